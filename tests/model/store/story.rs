//! What is kept of how a job went: the newest of what its runs told, and of how they failed.

use flexiq::internals::{LeaseId, MOST_BYTES, MOST_LINES, MOST_SETBACKS, Notes, Tell, Timestamp};
use flexiq::{DeadReason, Progress, SetbackKind, Story};

use super::world::World;

/// A line: its run and number, when, and what it says.
type Line = (u32, u32, Timestamp, String);
/// A setback: when, its run and attempt, what happened, in words, and whether the job died of it.
type Setback = (Timestamp, u32, u32, SetbackKind, String, Option<DeadReason>);

/// What is kept of how a job went.
#[derive(Clone, Debug, Default)]
pub(super) struct Chronicle {
    /// The newest progress, and its run.
    progress: Option<(u32, Progress)>,
    lines: Vec<Line>,
    setbacks: Vec<Setback>,
}

impl Chronicle {
    /// How far this run is, if it has said so.
    pub(super) fn progress_of(&self, run: u32) -> Option<Progress> {
        self.progress.as_ref().filter(|(of, _)| *of == run).map(|(_, progress)| progress.clone())
    }

    /// Keeps what a run tells.
    pub(super) fn keep(&mut self, lease: LeaseId, notes: &Notes) {
        if let Some(progress) = &notes.progress {
            self.progress = Some((lease.run, progress.clone()));
        }
        for line in &notes.lines {
            let is_new = |(run, number, ..): &Line| (*run, *number) < (lease.run, line.number);
            if self.lines.last().is_none_or(is_new) {
                self.lines.push((lease.run, line.number, line.at, line.message.clone()));
            }
        }
        cut(&mut self.lines, MOST_LINES, |(.., message)| message.len());
    }

    /// Keeps how a run set its job back.
    pub(super) fn set_back(&mut self, setback: Setback) {
        self.setbacks.push(setback);
        // Of a loss, the worker is kept and not the words.
        let bytes = |(_, _, _, kind, message, _): &Setback| match kind {
            SetbackKind::Loss => 16,
            _ => message.len(),
        };
        cut(&mut self.setbacks, MOST_SETBACKS, bytes);
    }

    pub(super) fn show(&self) -> Story {
        let lines = self.lines.iter().cloned();
        Story::of(lines.map(|(run, _, at, message)| (at, run, message)), self.setbacks.iter().cloned())
    }
}

/// Drops the oldest until no more than so many are left, and no more bytes than are kept.
fn cut<T>(kept: &mut Vec<T>, most: usize, bytes: impl Fn(&T) -> usize) {
    while kept.len() > most || kept.iter().map(&bytes).sum::<usize>() > MOST_BYTES {
        kept.remove(0);
    }
}

/// Keeps what runs tell that their worker still holds.
pub(super) fn tell(world: &mut World, tell: &Tell) {
    for (lease, notes) in &tell.runs {
        let held = world.held(tell.worker, *lease).filter(|record| record.queue == tell.queue);
        if let Some(record) = held {
            record.chronicle.keep(*lease, notes);
        }
    }
}
