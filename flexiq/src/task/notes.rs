//! What a run tells of itself while it runs: how far it is, and lines of its job's log.
//!
//! It is noted here and costs no call; the worker, which stands above and is reached through [`Tells`], sends the newest of
//! it now and then, and with the end of the run.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Context;
use super::context::RunInfo;
use crate::clock::Timestamp;
use crate::job::{
    LONGEST_LINE, LONGEST_PROGRESS, Line, LogLine, MOST_BYTES, MOST_LINES, Notes, Progress, push_cut,
};

/// Tells a store what runs have noted.
pub(crate) trait Tells: fmt::Debug + Send + Sync {
    /// The store's moment, as well as it is known while a run goes on.
    fn moment(&self, run: &RunInfo) -> Timestamp;

    /// A run has noted something, and had nothing to tell before.
    fn hear(&self, run: &Arc<RunInfo>);
}

/// What a run has noted and its worker has not told.
#[derive(Default)]
pub(crate) struct Notebook(Mutex<Option<Box<Pages>>>);

#[derive(Default)]
struct Pages {
    progress: Option<Progress>,
    lines: VecDeque<Line>,
    /// Bytes of these lines.
    bytes: usize,
    /// Lines so far, told or not.
    number: u32,
    /// The worker knows that there is something to tell.
    is_heard: bool,
}

impl Notebook {
    /// Notes something; true if the worker must hear of it.
    fn note(&self, note: impl FnOnce(&mut Pages)) -> bool {
        let mut pages = self.lock();
        let pages = pages.get_or_insert_default();
        note(pages);
        !std::mem::replace(&mut pages.is_heard, true)
    }

    /// What is to be told, if there is something.
    pub(crate) fn to_tell(&self) -> Option<Notes> {
        let pages = self.lock();
        let pages = pages.as_deref().filter(|pages| !pages.is_empty())?;
        Some(Notes { progress: pages.progress.clone(), lines: pages.lines.iter().cloned().collect() })
    }

    /// These notes were told; true if there is nothing more.
    pub(crate) fn were_told(&self, notes: &Notes) -> bool {
        let mut pages = self.lock();
        let Some(pages) = pages.as_deref_mut() else { return true };
        if pages.progress == notes.progress {
            pages.progress = None;
        }
        let newest = notes.lines.last().map_or(0, |line| line.number);
        while pages.lines.front().is_some_and(|line| line.number <= newest) {
            pages.drop_oldest();
        }
        pages.is_heard = !pages.is_empty();
        pages.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<Pages>>> {
        // A note that a panic has cut short is a shorter note.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pages {
    fn is_empty(&self) -> bool {
        self.progress.is_none() && self.lines.is_empty()
    }

    fn set_progress(&mut self, done: u64, total: Option<u64>, message: &str, at: Timestamp) {
        // A loop says this often: the memory of its last words is used again.
        let mut words = self.progress.take().map(|before| before.message).unwrap_or_default();
        words.clear();
        push_cut(&mut words, message, LONGEST_PROGRESS);
        self.progress = Some(Progress::new(done, total, words, at));
    }

    fn add_line(&mut self, line: &str, at: Timestamp) {
        let mut message = String::with_capacity(line.len().min(LONGEST_LINE));
        push_cut(&mut message, line, LONGEST_LINE);
        self.number = self.number.saturating_add(1);
        self.bytes += message.len();
        self.lines.push_back(Line { number: self.number, at, message });
        // The store would not keep more either.
        while self.lines.len() > MOST_LINES || self.bytes > MOST_BYTES {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(line) = self.lines.pop_front() {
            self.bytes -= line.message.len();
        }
    }
}

/// What a run has told of itself: of a context [`for_test`](Context::for_test), all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Told {
    /// How far it is, as it last said.
    pub progress: Option<Progress>,
    /// What it has logged, oldest first.
    pub log: Vec<LogLine>,
}

impl Context {
    /// Says how far the run is: `done` of `total`, or of `None` where nobody knows, and a few words, cut at 200 bytes.
    ///
    /// It is seen in [`Job::progress`](crate::Job::progress) within about half a second, and the last of it when the run has
    /// ended. The newest replaces the others, and none costs a call: say it as often as you like.
    ///
    /// ```
    /// # use flexiq::Context;
    /// /// Imports rows.
    /// #[flexiq::task]
    /// fn import(#[context] context: Context, rows: Vec<String>) {
    ///     for (done, row) in (1..).zip(&rows) {
    ///         // ...
    ///         context.progress(done, rows.len() as u64, row);
    ///     }
    /// }
    /// # let context = Context::for_test();
    /// # import(context.clone(), vec!["one".into(), "two".into()]);
    /// # let progress = context.told().progress.unwrap();
    /// # assert_eq!((progress.done, progress.total, &*progress.message), (2, Some(2), "two"));
    /// # context.progress(3, None, "");
    /// # context.progress(3, 10, format!("{}", 3));
    /// ```
    #[doc(alias = "set_progress")]
    #[doc(alias = "update_progress")]
    pub fn progress(&self, done: u64, total: impl Into<Option<u64>>, message: impl AsRef<str>) {
        let (at, total) = (self.moment(), total.into());
        self.note(|pages| pages.set_progress(done, total, message.as_ref(), at));
    }

    /// Adds a line to the log of the job, cut at 1 KiB, with the moment and the run.
    ///
    /// It is read by [`Queue::story`](crate::Queue::story), within about half a second, and goes with its job. Of a job the
    /// newest 100 lines are kept, of at most 16 KiB together: it is for a few words that people read, not for all that a
    /// program logs.
    ///
    /// ```
    /// # use flexiq::Context;
    /// # let context = Context::for_test();
    /// context.log("fetched 10 pages");
    /// assert_eq!(context.told().log[0].message, "fetched 10 pages");
    /// ```
    pub fn log(&self, line: impl AsRef<str>) {
        let at = self.moment();
        self.note(|pages| pages.add_line(line.as_ref(), at));
    }

    /// What the run has told of itself, for tests that call a task with a context [`for_test`](Self::for_test). A run of a
    /// worker finds here only what has not been sent yet.
    pub fn told(&self) -> Told {
        let Notes { progress, lines } = self.run.notebook.to_tell().unwrap_or_default();
        let line = |line: Line| LogLine::new(line.at, self.run.run, line.message);
        Told { progress, log: lines.into_iter().map(line).collect() }
    }

    fn note(&self, note: impl FnOnce(&mut Pages)) {
        if self.run.notebook.note(note)
            && let Some(tells) = &self.tells
        {
            tells.hear(&self.run);
        }
    }

    fn moment(&self) -> Timestamp {
        match &self.tells {
            Some(tells) => tells.moment(&self.run),
            None => std::time::SystemTime::now().into(),
        }
    }
}

impl fmt::Debug for Notebook {
    // What a task says is for those who look at its job.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notebook").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_progress_and_the_newest_lines_are_noted_and_cut() {
        let context = Context::for_test();
        for done in 1..=150 {
            context.progress(done, 150, "ä".repeat(150));
            context.log(format!("line {done}"));
        }
        let Told { progress, log } = context.told();
        let progress = progress.expect("it was said");
        assert_eq!((progress.done, progress.total), (150, Some(150)));
        assert!(progress.message.len() <= 200 && progress.message.ends_with("ä… (cut)"));
        assert_eq!((log.len(), &*log[0].message), (100, "line 51"));
        (0..20).for_each(|_| context.log("x".repeat(2_000)));
        let log = context.told().log;
        assert_eq!((log.len(), log[0].message.len()), (16, 1_024));
    }

    #[test]
    fn what_comes_while_others_are_told_is_kept_and_heard_of() {
        let notebook = Notebook::default();
        let at = Timestamp::from_millis(0);
        let log = |line: &str| notebook.note(|pages| pages.add_line(line, at));
        assert!(log("one") && !log("two"), "heard of once");
        let notes = notebook.to_tell().expect("there is something");
        assert!(!log("three"));
        assert!(!notebook.were_told(&notes), "there is more");
        let rest = notebook.to_tell().expect("there is more");
        assert_eq!((rest.lines.len(), rest.lines[0].number), (1, 3));
        assert!(notebook.were_told(&rest) && notebook.to_tell().is_none());
        assert!(log("four"), "it must be heard of again");
    }
}
