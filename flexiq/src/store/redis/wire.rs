//! How what goes to scripts and comes from them is packed: numbers in big endian, as `struct` reads them.

use redis::Value;

use super::failure::refused;
use crate::clock::Timestamp;
use crate::error::{Error, Result};

/// No moment lies beyond this, as in `lua/lib/queue.lua`.
pub(super) const FAR: i64 = (1 << 44) - 1;

/// Bytes that are being put together.
#[derive(Default)]
pub(super) struct Packed(pub(super) Vec<u8>);

impl Packed {
    pub(super) fn with_room_for(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    pub(super) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(super) fn byte(self, byte: u8) -> Self {
        self.bytes(&[byte])
    }

    pub(super) fn word(self, number: u32) -> Self {
        self.bytes(&number.to_be_bytes())
    }

    /// Milliseconds, in six bytes; never beyond what a store's moment may be.
    pub(super) fn moment(self, ms: i64) -> Self {
        self.bytes(&ms.clamp(0, FAR).to_be_bytes()[2..])
    }

    /// A short text behind its length.
    pub(super) fn text(self, text: &str) -> Self {
        self.byte(text.len() as u8).bytes(text.as_bytes())
    }
}

/// Bytes that are being read. What is missing is `None`.
pub(super) struct Unpacked<'a>(pub(super) &'a [u8]);

impl<'a> Unpacked<'a> {
    pub(super) fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn number(&mut self, bytes: usize) -> Option<u64> {
        Some(self.take(bytes)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.number(1).map(|number| number as u8)
    }

    pub(super) fn word(&mut self) -> Option<u32> {
        self.number(4).map(|number| number as u32)
    }

    pub(super) fn moment(&mut self) -> Option<Timestamp> {
        self.number(6).map(|ms| Timestamp::from_millis(ms as i64))
    }

    pub(super) fn id(&mut self) -> Option<[u8; 16]> {
        self.take(16)?.try_into().ok()
    }

    pub(super) fn text(&mut self, bytes: usize) -> Option<&'a str> {
        str::from_utf8(self.take(bytes)?).ok()
    }
}

/// An answer's parts in order. What does not fit is an error that names the store.
pub(super) struct Parts<'a> {
    parts: std::vec::IntoIter<Value>,
    place: &'a str,
}

impl<'a> Parts<'a> {
    pub(super) fn of(answer: Value, place: &'a str) -> Self {
        let parts = match answer {
            Value::Array(parts) | Value::Set(parts) => parts,
            Value::Map(pairs) => pairs.into_iter().flat_map(|(key, value)| [key, value]).collect(),
            Value::Nil => Vec::new(),
            one => vec![one],
        };
        Self { parts: parts.into_iter(), place }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.len() == 0
    }

    /// The next part as it is; nothing, where there is none.
    pub(super) fn value(&mut self) -> Value {
        self.parts.next().unwrap_or(Value::Nil)
    }

    pub(super) fn bytes(&mut self) -> Result<Vec<u8>> {
        match self.parts.next() {
            Some(Value::BulkString(bytes)) => Ok(bytes),
            Some(Value::SimpleString(text)) => Ok(text.into_bytes()),
            other => Err(unreadable(self.place, &format!("{other:?} where bytes belong"))),
        }
    }

    pub(super) fn text(&mut self) -> Result<String> {
        String::from_utf8(self.bytes()?).map_err(|_| unreadable(self.place, "a text that is not UTF-8"))
    }

    pub(super) fn number(&mut self) -> Result<i64> {
        match self.parts.next() {
            Some(Value::Int(number)) => Ok(number),
            Some(Value::BulkString(bytes)) => str::from_utf8(&bytes)
                .ok()
                .and_then(|text| text.parse().ok())
                .ok_or_else(|| unreadable(self.place, "a number that is none")),
            other => Err(unreadable(self.place, &format!("{other:?} where a number belongs"))),
        }
    }
}

/// An error for what no version of this store has written.
pub(super) fn unreadable(place: &str, what: &str) -> Error {
    refused(place, format!("it holds {what}: another program uses this prefix, or a newer flexiq"), None)
}
