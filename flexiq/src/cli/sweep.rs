//! cancel, retry and delete: single jobs by their ids, or all of a kind, page by page.

use std::collections::HashSet;

use serde_json::json;
use tokio::task::JoinSet;

use super::args::{StateName, Which};
use super::confirm;
use super::failure::Failure;
use super::report::Report;
use crate::error::{Error, Result};
use crate::job::{Job, JobId};
use crate::queue::{Cursor, JobPage, Queue};
use crate::store::{Cancelled, TaskCounts};

/// Jobs that are worked on at once, so that they share the steps of the store.
const AT_ONCE: usize = 100;
/// Jobs of one page.
const PAGE: usize = 1_000;

pub(super) async fn cancel(queue: &Queue, which: Which) -> Result<Report, Failure> {
    sweep(queue, Verb::Cancel, which).await
}

pub(super) async fn retry(queue: &Queue, which: Which) -> Result<Report, Failure> {
    sweep(queue, Verb::Retry, which).await
}

pub(super) async fn delete(queue: &Queue, which: Which) -> Result<Report, Failure> {
    sweep(queue, Verb::Delete, which).await
}

/// What is done to each job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Cancel,
    Retry,
    Delete,
}

impl Verb {
    /// The states in which it does something.
    fn accepted(self) -> &'static [StateName] {
        use StateName::{Cancelled, Dead, Expired, Ready, Running, Scheduled, Succeeded};
        match self {
            Self::Cancel => &[Scheduled, Ready, Running],
            Self::Retry => &[Dead, Cancelled, Expired],
            Self::Delete => &[Succeeded, Dead, Cancelled, Expired],
        }
    }

    /// The states that are meant where none is named: what was cancelled is not retried by accident.
    fn meant(self) -> &'static [StateName] {
        match self {
            Self::Retry => &[StateName::Dead],
            _ => self.accepted(),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Retry => "retry",
            Self::Delete => "delete",
        }
    }

    async fn carry_out(self, queue: Queue, id: JobId) -> Result<Became> {
        let became = match self {
            Self::Cancel => match queue.cancel(id).await {
                Ok(Cancelled::Done) => Became::Done,
                Ok(Cancelled::Requested) => Became::Requested,
                Ok(Cancelled::AlreadyEnded(_)) => Became::Unchanged,
                Err(Error::UnknownJob(_)) => Became::Unknown(id),
                Err(other) => return Err(other),
            },
            Self::Retry => match queue.retry(id).await {
                Err(error @ Error::KeyTaken { .. }) => Became::Refused(error.to_string()),
                answer => Became::of(answer?),
            },
            Self::Delete => Became::of(queue.delete(id).await?),
        };
        Ok(became)
    }
}

/// What became of a job.
enum Became {
    Done,
    /// It is running, and was told to stop.
    Requested,
    /// It is in a state in which nothing is to be done.
    Unchanged,
    /// Another job has its unique key.
    Refused(String),
    Unknown(JobId),
}

impl Became {
    fn of(is_done: bool) -> Self {
        if is_done { Self::Done } else { Self::Unchanged }
    }
}

/// How far it is.
struct Sweep<'a> {
    queue: &'a Queue,
    verb: Verb,
    done: u64,
    requested: u64,
    unchanged: u64,
    /// Why the newest was left as it is, if that has a reason of its own.
    refusal: Option<String>,
    failures: Vec<String>,
}

async fn sweep(queue: &Queue, verb: Verb, which: Which) -> Result<Report, Failure> {
    let mut sweep =
        Sweep { queue, verb, done: 0, requested: 0, unchanged: 0, refusal: None, failures: Vec::new() };
    if which.ids.is_empty() {
        sweep.all(&which).await?;
    } else {
        sweep.named(which.ids).await?;
    }
    Ok(sweep.report())
}

impl Sweep<'_> {
    /// Works on the jobs that are named: each must be there and fit.
    async fn named(&mut self, ids: Vec<JobId>) -> Result<()> {
        let accepted: Vec<String> = self.verb.accepted().iter().map(|state| state.to_string()).collect();
        for id in ids {
            let is_there = self.queue.status(id).await;
            let unchanged = self.unchanged;
            match is_there {
                Ok(job) => {
                    self.step(&[id]).await?;
                    if self.unchanged > unchanged {
                        let (state, accepted, word) = (job.state, accepted.join(", "), self.verb.word());
                        let of_another_state =
                            || format!("job {id} is {state}; {word} takes jobs that are {accepted}");
                        self.failures.push(self.refusal.take().unwrap_or_else(of_another_state));
                    }
                }
                Err(error @ Error::UnknownJob(_)) => self.failures.push(error.to_string()),
                Err(other) => return Err(other),
            }
        }
        Ok(())
    }

    /// Works on all jobs of a kind.
    async fn all(&mut self, which: &Which) -> Result<(), Failure> {
        let states = match which.state {
            Some(state) if self.verb.accepted().contains(&state) => vec![state],
            Some(state) => {
                let accepted: Vec<String> = self.verb.accepted().iter().map(ToString::to_string).collect();
                let text = format!(
                    "{} takes jobs that are {}, and --state is {state}",
                    self.verb.word(),
                    accepted.join(", ")
                );
                return Err(Failure::Usage(text));
            }
            None => self.verb.meant().to_vec(),
        };
        // A mistake in a name is told before anybody is asked.
        self.page(which, states[0], None, 1).await?;
        let about = self.count(which, &states).await?;
        confirm::ask(&format!("This will {} about {about} jobs", self.verb.word()), which.yes)?;
        let progress = confirm::progress(about);
        for state in states {
            let mut after = None;
            let mut seen = HashSet::new();
            loop {
                let page = self.page(which, state, after, PAGE).await?;
                // A running job whose lease is renewed meanwhile is met again.
                let ids: Vec<JobId> = page
                    .jobs
                    .iter()
                    .map(|job: &Job| job.id)
                    .filter(|id| state != StateName::Running || seen.insert(*id))
                    .collect();
                for ids in ids.chunks(AT_ONCE) {
                    self.step(ids).await?;
                    progress.inc(ids.len() as u64);
                }
                let is_seen = ids.is_empty() && !page.jobs.is_empty();
                after = page.next;
                if after.is_none() || is_seen {
                    break;
                }
            }
        }
        progress.finish_and_clear();
        Ok(())
    }

    async fn page(
        &self,
        which: &Which,
        state: StateName,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<JobPage> {
        let mut jobs = self.queue.jobs().state(state.into()).limit(limit);
        if let Some(queue) = &which.queue {
            jobs = jobs.queue(queue);
        }
        if let Some(task) = &which.task {
            jobs = jobs.task(task);
        }
        if let Some(after) = after {
            jobs = jobs.after(after);
        }
        jobs.await
    }

    /// How many jobs there are of the kind.
    async fn count(&self, which: &Which, states: &[StateName]) -> Result<u64> {
        let is_meant = |counts: &TaskCounts| {
            which.queue.as_ref().is_none_or(|queue| *queue == counts.queue)
                && which.task.as_ref().is_none_or(|task| *task == counts.task)
        };
        let counts = self.queue.counts().await?;
        let meant = counts.iter().filter(|counts| is_meant(counts));
        Ok(meant.flat_map(|counts| states.iter().map(|state| state.of(counts))).sum())
    }

    /// Works on a few jobs at once.
    async fn step(&mut self, ids: &[JobId]) -> Result<()> {
        let mut steps = JoinSet::new();
        for id in ids {
            steps.spawn(self.verb.carry_out(self.queue.clone(), *id));
        }
        for became in steps.join_all().await {
            match became? {
                Became::Done => self.done += 1,
                Became::Requested => self.requested += 1,
                Became::Unchanged => self.unchanged += 1,
                Became::Refused(refusal) => {
                    self.unchanged += 1;
                    self.refusal = Some(refusal);
                }
                Became::Unknown(id) => self.failures.push(Error::UnknownJob(id).to_string()),
            }
        }
        Ok(())
    }

    fn report(self) -> Report {
        let jobs = |count: u64| if count == 1 { "1 job".to_owned() } else { format!("{count} jobs") };
        let text = match self.verb {
            Verb::Cancel => format!(
                "{} cancelled, {} told to stop, {} had ended",
                jobs(self.done),
                self.requested,
                self.unchanged
            ),
            Verb::Retry => format!("{} made ready, {} left as they are", jobs(self.done), self.unchanged),
            Verb::Delete => format!("{} deleted, {} left as they are", jobs(self.done), self.unchanged),
        };
        let json = json!({
            "done": self.done,
            "requested": self.requested,
            "unchanged": self.unchanged,
            "failures": self.failures,
        });
        Report::new(text, json).with_failures(self.failures)
    }
}

impl StateName {
    /// How many jobs are in this state.
    fn of(self, counts: &TaskCounts) -> u64 {
        match self {
            Self::Scheduled => counts.scheduled,
            Self::Ready => counts.ready,
            Self::Running => counts.running,
            Self::Succeeded => counts.succeeded,
            Self::Dead => counts.dead,
            Self::Cancelled => counts.cancelled,
            Self::Expired => counts.expired,
        }
    }
}
