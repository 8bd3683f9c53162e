//! Reads the files of a ledger, and puts lines that belong together into one.

use std::collections::HashMap;
use std::path::Path;

use flexiq::JobId;

use super::Line;
use super::check::Span;

/// What all processes did.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The bodies that began, file by file, each file in its order.
    pub bodies: Vec<Body>,
    /// The calls that producers made.
    pub calls: Vec<Call>,
}

/// One body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// The file of its process.
    pub process: String,
    /// Its task.
    pub task: String,
    /// Its job.
    pub job: JobId,
    /// Its run.
    pub run: u32,
    /// When it began.
    pub start: i64,
    /// How it came to its end.
    pub fate: Fate,
}

/// How a body came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It returned.
    Returned(i64),
    /// Its process was killed.
    Killed(i64),
    /// It was dropped, or it is still running.
    Open,
}

/// One call of a producer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its jobs.
    pub jobs: Vec<JobId>,
    /// What the producer was told.
    pub answer: Answer,
}

/// What a producer was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// All is stored.
    Stored,
    /// Nothing is stored.
    Refused,
    /// Nothing: it was killed, or the store did not answer.
    Unknown,
}

impl History {
    /// Reads all files of a folder.
    ///
    /// # Errors
    ///
    /// What the system says, or which line is none.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let mut history = Self::default();
        for entry in std::fs::read_dir(folder).map_err(|error| error.to_string())? {
            let path = entry.map_err(|error| error.to_string())?.path();
            history.add(Self::read_file(&path)?);
        }
        Ok(history)
    }

    /// Reads one file.
    ///
    /// # Errors
    ///
    /// What the system says, or which line is none.
    pub fn read_file(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        let process = path.file_name().unwrap_or_default().to_string_lossy();
        Self::of_process(&process, &text)
    }

    /// Reads what one process wrote.
    fn of_process(process: &str, text: &str) -> Result<Self, String> {
        let mut history = Self::default();
        let mut bodies: HashMap<(JobId, u32), usize> = HashMap::new();
        let mut calls: HashMap<JobId, usize> = HashMap::new();
        let answered = |history: &mut Self, call: usize, answer| history.calls[call].answer = answer;
        for line in text.split_inclusive('\n') {
            // The last line of a process that was killed may be torn.
            let Some(line) = line.strip_suffix('\n') else { break };
            match line.parse()? {
                Line::Intent { call, job } => {
                    let index = *calls.entry(call).or_insert_with(|| {
                        history.calls.push(Call { jobs: Vec::new(), answer: Answer::Unknown });
                        history.calls.len() - 1
                    });
                    history.calls[index].jobs.push(job);
                }
                Line::Stored { call } => answered(&mut history, calls[&call], Answer::Stored),
                Line::Refused { call } => answered(&mut history, calls[&call], Answer::Refused),
                Line::Start { at, task, job, run } => {
                    bodies.insert((job, run), history.bodies.len());
                    let process = process.to_owned();
                    history.bodies.push(Body { process, task, job, run, start: at, fate: Fate::Open });
                }
                Line::End { at, job, run } => {
                    history.bodies[bodies[&(job, run)]].fate = Fate::Returned(at);
                }
                Line::Killed { at } => {
                    for body in history.bodies.iter_mut().filter(|body| body.fate == Fate::Open) {
                        body.fate = Fate::Killed(at);
                    }
                }
            }
        }
        Ok(history)
    }

    fn add(&mut self, other: Self) {
        self.bodies.extend(other.bodies);
        self.calls.extend(other.calls);
    }

    /// The bodies of one task.
    pub fn bodies_of<'a>(&'a self, task: &'a str) -> impl Iterator<Item = &'a Body> {
        self.bodies.iter().filter(move |body| body.task == task)
    }

    /// The bodies that a kill cut short.
    pub fn killed(&self) -> impl Iterator<Item = &Body> {
        self.bodies.iter().filter(|body| matches!(body.fate, Fate::Killed(_)))
    }

    /// The jobs of which their producer knows that they are stored.
    pub fn stored(&self) -> impl Iterator<Item = JobId> {
        let stored = self.calls.iter().filter(|call| call.answer == Answer::Stored);
        stored.flat_map(|call| call.jobs.iter().copied())
    }
}

impl Body {
    /// From its start to its end.
    pub fn span(&self) -> Span {
        let to = match self.fate {
            Fate::Returned(at) | Fate::Killed(at) => at,
            Fate::Open => i64::MAX,
        };
        Span { from: self.start, to }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[Line]) -> History {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        History::of_process("p", &text).expect("it can be read")
    }

    #[test]
    fn a_kill_ends_the_bodies_that_have_not_returned() {
        let (first, second) = (JobId::new(), JobId::new());
        let history = of(&[
            Line::Start { at: 1, task: "t".into(), job: first, run: 1 },
            Line::Start { at: 2, task: "t".into(), job: second, run: 1 },
            Line::End { at: 3, job: first, run: 1 },
            Line::Killed { at: 9 },
        ]);
        let fates: Vec<_> = history.bodies.iter().map(|body| body.fate).collect();
        assert_eq!(fates, [Fate::Returned(3), Fate::Killed(9)]);
        assert_eq!(history.killed().count(), 1);
    }

    #[test]
    fn a_call_without_an_answer_is_unknown() {
        let ids = [JobId::new(), JobId::new(), JobId::new()];
        let history = of(&[
            Line::Intent { call: ids[0], job: ids[0] },
            Line::Intent { call: ids[0], job: ids[1] },
            Line::Stored { call: ids[0] },
            Line::Intent { call: ids[2], job: ids[2] },
        ]);
        assert_eq!(history.calls[0], Call { jobs: ids[..2].to_vec(), answer: Answer::Stored });
        assert_eq!(history.calls[1], Call { jobs: ids[2..].to_vec(), answer: Answer::Unknown });
        assert_eq!(history.stored().collect::<Vec<_>>(), ids[..2]);
    }

    #[test]
    fn a_torn_last_line_is_left_out() {
        let job = JobId::new();
        let text = format!("{}\nend 3 {job}", Line::Start { at: 1, task: "t".into(), job, run: 1 });
        let history = History::of_process("p", &text).expect("it can be read");
        assert_eq!(history.bodies[0].fate, Fate::Open);
    }
}
