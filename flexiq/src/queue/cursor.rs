//! Where the next page of a list begins, as a text that can be handed on.

use std::fmt;
use std::str::FromStr;

use crate::clock::Timestamp;
use crate::error::Error;
use crate::job::JobId;
use crate::name::Name;
use crate::store::{Listed, Reached};

/// Where the next page of a list of jobs begins. Its text is opaque: it can be handed on and read back.
#[derive(Clone, PartialEq, Eq)]
pub struct Cursor(pub(super) Reached);

/// Longer ones are not looked at.
const LONGEST: usize = 2 * 1_024;

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(&self.0).iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cursor({self})")
    }
}

impl FromStr for Cursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let read = || (text.len() <= LONGEST).then(|| read(&bytes_of(text)?)).flatten();
        read().map(Self).ok_or_else(|| Error::Invalid {
            what: "cursor".into(),
            given: format!("a text of {} bytes that is none", text.len()),
            accepted: "the one that the page before answered, as it was written".into(),
        })
    }
}

/// Queue, state, and the last job, if there is one. Texts stand behind their length.
fn write(reached: &Reached) -> Vec<u8> {
    let mut bytes = Vec::new();
    let text = |bytes: &mut Vec<u8>, text: &str| {
        // Names have at most 100 bytes and partitions 200.
        bytes.push(text.len() as u8);
        bytes.extend_from_slice(text.as_bytes());
    };
    text(&mut bytes, &reached.queue);
    bytes.push(reached.state);
    if let Some(Listed { task, partition, priority, moment, id }) = &reached.last {
        text(&mut bytes, task);
        text(&mut bytes, partition);
        bytes.extend_from_slice(&priority.to_be_bytes());
        bytes.extend_from_slice(&moment.as_millis().to_be_bytes());
        bytes.extend_from_slice(id.as_bytes());
    }
    bytes
}

fn read(bytes: &[u8]) -> Option<Reached> {
    let mut rest = bytes;
    let queue = Name::new("queue", take_text(&mut rest)?).ok()?;
    let [state] = take(&mut rest)?;
    if rest.is_empty() {
        return Some(Reached { queue, state, last: None });
    }
    let last = Listed {
        task: take_text(&mut rest)?,
        partition: take_text(&mut rest)?,
        priority: i8::from_be_bytes(take(&mut rest)?),
        moment: Timestamp::from_millis(i64::from_be_bytes(take(&mut rest)?)),
        id: JobId::from_bytes(take(&mut rest)?),
    };
    rest.is_empty().then_some(Reached { queue, state, last: Some(last) })
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, left) = rest.split_first_chunk()?;
    *rest = left;
    Some(*taken)
}

fn take_text(rest: &mut &[u8]) -> Option<String> {
    let [length] = take(rest)?;
    let (text, left) = rest.split_at_checked(length.into())?;
    *rest = left;
    String::from_utf8(text.to_vec()).ok()
}

fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.chars().map(|digit| Some(digit.to_digit(16)? as u8)).collect::<Option<_>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let id = JobId::from_bytes([7; 16]);
        let ready = Listed {
            task: "send".into(),
            partition: "ä b".into(),
            priority: -100,
            moment: Timestamp::from_millis(i64::MAX),
            id,
        };
        let moment = Listed::at(Timestamp::from_millis(1), id);
        for (state, last) in [(0, None), (1, Some(ready)), (6, Some(moment))] {
            let cursor = Cursor(Reached { queue: Name::from_static("emails"), state, last });
            assert_eq!(cursor.to_string().parse::<Cursor>().expect("it is one"), cursor);
        }
    }

    #[test]
    fn any_other_text_is_refused() {
        for text in ["", "0", "zz", "ä", "00", "0171", "017107ff", &"0".repeat(5_000)] {
            let error = text.parse::<Cursor>().expect_err(text).to_string();
            assert!(error.contains("the page before answered"), "{error}");
        }
    }
}
