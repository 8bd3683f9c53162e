//! How the story of a job is written down, alike in every store. What is in a store is for ever: only add.
//!
//! A log and a list of setbacks are entries behind each other, oldest first: moment, run, the number of a line or the
//! attempt, two marks (kind and death of a setback), and a message behind its length. Numbers are big endian.

use std::collections::VecDeque;

use crate::clock::Timestamp;
use crate::job::{
    DeadReason, Line, LogLine, MOST_BYTES, MOST_LINES, MOST_SETBACKS, Notes, Progress, Setback, SetbackKind,
    State, Story,
};
use crate::store::codes::{dead_code, read_state, state};
use crate::store::types::WorkerId;

/// Bytes of an entry beside its message.
const HEAD: usize = 18;
/// No message has more, whoever wrote it.
const LONGEST: usize = 4 * 1024;

/// What sets a job back, as a store finds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blow<'a> {
    pub(crate) at: Timestamp,
    pub(crate) run: u32,
    /// Failures before the run.
    pub(crate) failures: u32,
    pub(crate) kind: SetbackKind,
    pub(crate) death: Option<DeadReason>,
    /// The message; of a loss, the worker's id.
    pub(crate) words: &'a [u8],
}

/// A log with the lines of a run behind it.
pub(crate) fn add_lines(log: &[u8], run: u32, lines: &[Line]) -> Vec<u8> {
    join(log, &write_lines(run, lines), MOST_LINES)
}

/// The setbacks with one more.
pub(crate) fn add_setback(setbacks: &[u8], blow: &Blow<'_>) -> Vec<u8> {
    let marks = [kind_code(blow.kind), blow.death.map_or(0, |reason| dead_code(reason) + 1)];
    let attempt = blow.failures.saturating_add(1);
    let mut entry = Vec::with_capacity(HEAD + blow.words.len());
    write_entry(&mut entry, blow.at, blow.run, attempt, marks, blow.words);
    join(setbacks, &entry, MOST_SETBACKS)
}

/// Lines of a run as entries.
pub(crate) fn write_lines(run: u32, lines: &[Line]) -> Vec<u8> {
    let mut text = Vec::new();
    for line in lines {
        write_entry(&mut text, line.at, run, line.number, [0, 0], line.message.as_bytes());
    }
    text
}

fn write_entry(to: &mut Vec<u8>, at: Timestamp, run: u32, number: u32, marks: [u8; 2], message: &[u8]) {
    let message = &message[..message.len().min(LONGEST)];
    to.extend(&at.as_millis().to_be_bytes()[2..]);
    to.extend(run.to_be_bytes());
    to.extend(number.to_be_bytes());
    to.extend(marks);
    to.extend((message.len() as u16).to_be_bytes());
    to.extend(message);
}

/// One text with what is new of another behind it, without what is too old to be kept.
fn join(text: &[u8], added: &[u8], most: usize) -> Vec<u8> {
    let mut kept: VecDeque<Entry<'_>> = entries(text).collect();
    for entry in entries(added) {
        // Whoever tells the same again adds nothing.
        if kept.back().is_none_or(|newest| (newest.run, newest.number) < (entry.run, entry.number)) {
            kept.push_back(entry);
        }
    }
    let mut bytes: usize = kept.iter().map(|entry| entry.message.len()).sum();
    while kept.len() > most || bytes > MOST_BYTES {
        bytes -= kept.pop_front().map_or(bytes, |oldest| oldest.message.len());
    }
    let mut joined = Vec::with_capacity(bytes + kept.len() * HEAD);
    for entry in kept {
        write_entry(&mut joined, entry.at, entry.run, entry.number, entry.marks, entry.message);
    }
    joined
}

/// An entry of a log or of setbacks.
#[derive(Clone, Copy)]
struct Entry<'a> {
    at: Timestamp,
    run: u32,
    number: u32,
    marks: [u8; 2],
    message: &'a [u8],
}

impl Entry<'_> {
    fn words(&self) -> String {
        String::from_utf8_lossy(self.message).into_owned()
    }
}

/// The entries of a text, up to what no version has written.
fn entries(mut text: &[u8]) -> impl Iterator<Item = Entry<'_>> {
    std::iter::from_fn(move || read_entry(&mut text))
}

fn read_entry<'a>(text: &mut &'a [u8]) -> Option<Entry<'a>> {
    let at = Timestamp::from_millis(number(text, 6)? as i64);
    let (run, count) = (number(text, 4)? as u32, number(text, 4)? as u32);
    let marks = [number(text, 1)? as u8, number(text, 1)? as u8];
    let length = number(text, 2)? as usize;
    Some(Entry { at, run, number: count, marks, message: take(text, length)? })
}

/// The story of two texts.
pub(crate) fn read_story(log: &[u8], setbacks: &[u8]) -> Story {
    let line = |entry: Entry<'_>| LogLine::new(entry.at, entry.run, entry.words());
    let mut story = Story::default();
    story.log.extend(entries(log).map(line));
    story.setbacks.extend(entries(setbacks).map(read_setback));
    story
}

fn read_setback(entry: Entry<'_>) -> Setback {
    let kind = read_kind(entry.marks[0]);
    let worker = <[u8; 16]>::try_from(entry.message).ok().map(WorkerId::from_bytes);
    let message = match (kind, worker) {
        (SetbackKind::Loss, Some(worker)) => format!("worker {worker} did not renew its lease"),
        _ => entry.words(),
    };
    let death = entry.marks[1].checked_sub(1).and_then(|reason| match read_state(state::DEAD, reason) {
        Some(State::Dead(reason)) => Some(reason),
        _ => None,
    });
    Setback { at: entry.at.into(), run: entry.run, attempt: entry.number, kind, message, death }
}

pub(crate) fn kind_code(kind: SetbackKind) -> u8 {
    match kind {
        SetbackKind::Error => 0,
        SetbackKind::Panic => 1,
        SetbackKind::Timeout => 2,
        SetbackKind::Undecodable => 3,
        SetbackKind::Deferral => 4,
        SetbackKind::Loss => 5,
    }
}

fn read_kind(code: u8) -> SetbackKind {
    match code {
        1 => SetbackKind::Panic,
        2 => SetbackKind::Timeout,
        3 => SetbackKind::Undecodable,
        4 => SetbackKind::Deferral,
        5 => SetbackKind::Loss,
        _ => SetbackKind::Error,
    }
}

/// A progress behind the number of its run.
pub(crate) fn write_progress(run: u32, progress: &Progress) -> Vec<u8> {
    let mut text = run.to_be_bytes().to_vec();
    text.extend(&Timestamp::from(progress.at).as_millis().to_be_bytes()[2..]);
    text.extend(progress.done.to_be_bytes());
    text.push(progress.total.is_some().into());
    text.extend(progress.total.unwrap_or_default().to_be_bytes());
    text.extend(progress.message.as_bytes());
    text
}

/// The progress of a text, if it is of this run.
pub(crate) fn read_progress(mut text: &[u8], run: u32) -> Option<Progress> {
    if number(&mut text, 4)? != u64::from(run) {
        return None;
    }
    let at = Timestamp::from_millis(number(&mut text, 6)? as i64);
    let (done, has_total, total) = (number(&mut text, 8)?, number(&mut text, 1)?, number(&mut text, 8)?);
    let message = String::from_utf8_lossy(text).into_owned();
    Some(Progress::new(done, (has_total > 0).then_some(total), message, at))
}

/// Notes as a store is sent them: the progress behind its length, then the lines.
pub(crate) fn write_notes(run: u32, notes: &Notes) -> Vec<u8> {
    let progress = notes.progress.as_ref().map(|progress| write_progress(run, progress)).unwrap_or_default();
    let mut text = (progress.len() as u16).to_be_bytes().to_vec();
    text.extend(progress);
    text.extend(write_lines(run, &notes.lines));
    text
}

fn take<'a>(text: &mut &'a [u8], bytes: usize) -> Option<&'a [u8]> {
    let (taken, rest) = text.split_at_checked(bytes)?;
    *text = rest;
    Some(taken)
}

fn number(text: &mut &[u8], bytes: usize) -> Option<u64> {
    Some(take(text, bytes)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn lines(numbers: std::ops::RangeInclusive<u32>, bytes: usize) -> Vec<Line> {
        let line = |number| Line { number, at: AT, message: "x".repeat(bytes) };
        numbers.map(line).collect()
    }

    #[test]
    fn what_is_written_is_read() {
        let log = add_lines(&[], 3, &[Line { number: 1, at: AT, message: "fetched ✓".into() }]);
        let words = b"it broke";
        let (kind, death) = (SetbackKind::Panic, Some(DeadReason::Failures));
        let setbacks = add_setback(&[], &Blow { at: AT, run: 3, failures: 1, kind, death, words });
        let story = read_story(&log, &setbacks);
        let line = LogLine { at: AT.into(), run: 3, message: "fetched ✓".into() };
        let message = "it broke".to_owned();
        assert_eq!(story.log, [line]);
        assert_eq!(story.setbacks, [Setback { at: AT.into(), run: 3, attempt: 2, kind, message, death }]);
    }

    #[test]
    fn every_kind_of_setback_and_of_death_is_read_as_it_was_written() {
        use DeadReason::{Decode, Deferrals, Failures, Losses, Never};
        use SetbackKind::{Deferral, Error, Loss, Panic, Timeout, Undecodable};
        let deaths = [None, Some(Failures), Some(Never), Some(Deferrals), Some(Losses), Some(Decode)];
        for (kind, death) in [Error, Panic, Timeout, Undecodable, Deferral, Loss].into_iter().zip(deaths) {
            let text = add_setback(&[], &Blow { at: AT, run: 1, failures: 0, kind, death, words: b"" });
            let setback = &read_story(&[], &text).setbacks[0];
            assert_eq!((setback.kind, setback.death), (kind, death));
        }
    }

    #[test]
    fn the_newest_lines_are_kept_and_one_that_is_told_again_is_not_added() {
        let log = add_lines(&[], 1, &lines(1..=90, 10));
        let log = add_lines(&log, 1, &lines(80..=110, 10));
        let first = entries(&log).next().map(|entry| entry.number);
        assert_eq!((entries(&log).count(), first), (MOST_LINES, Some(11)));
        let log = add_lines(&log, 2, &lines(1..=1, 10));
        assert_eq!(entries(&log).last().map(|entry| (entry.run, entry.number)), Some((2, 1)));
    }

    #[test]
    fn the_messages_of_a_log_have_sixteen_kibibytes_together() {
        let log = add_lines(&[], 1, &lines(1..=20, 1_024));
        assert_eq!(entries(&log).count(), 16);
    }

    #[test]
    fn a_progress_is_that_of_its_run_alone() {
        let progress = Progress::new(3, None, "page 3".into(), AT);
        let text = write_progress(2, &progress);
        assert_eq!(read_progress(&text, 2), Some(progress));
        assert_eq!(read_progress(&text, 3), None);
    }
}
