//! How values and rates are written down, and what is read back. Numbers in a file are for ever: only add.

use std::time::Duration;

use rusqlite::Row;

use crate::job::{State, Value};
use crate::policy::Rate;
use crate::store::codes;
pub(super) use crate::store::codes::{dead_code, release, release_code, scheduled_code, state, state_code};

/// The state that two numbers mean, or an error that names them.
pub(super) fn read_state(state: u8, reason: u8) -> rusqlite::Result<State> {
    codes::read_state(state, reason).ok_or_else(|| unreadable(format!("state {state} with reason {reason}")))
}

const UNIT: u8 = 0;
const JSON: u8 = 1;
const TOO_LARGE: u8 = 2;

/// The kind and the bytes of a value.
pub(super) fn write_value(value: &Value) -> (u8, Vec<u8>) {
    match value {
        Value::Unit => (UNIT, Vec::new()),
        Value::Json(bytes) => (JSON, bytes.clone()),
        Value::TooLarge { size, limit } => {
            (TOO_LARGE, [(*size as u64).to_le_bytes(), (*limit as u64).to_le_bytes()].concat())
        }
    }
}

/// The value of a kind and its bytes.
pub(super) fn read_value(kind: u8, bytes: Vec<u8>) -> rusqlite::Result<Value> {
    match kind {
        UNIT => Ok(Value::Unit),
        JSON => Ok(Value::Json(bytes)),
        TOO_LARGE => match bytes.as_chunks::<8>().0 {
            [size, limit] => Ok(Value::TooLarge { size: read_size(*size), limit: read_size(*limit) }),
            _ => Err(unreadable(format!("a size of {} bytes", bytes.len()))),
        },
        _ => Err(unreadable(format!("value kind {kind}"))),
    }
}

fn read_size(bytes: [u8; 8]) -> usize {
    usize::try_from(u64::from_le_bytes(bytes)).unwrap_or(usize::MAX)
}

/// Rates as a column keeps them: starts and milliseconds, such as `100/60000` or `10/1000 spread,100000/86400000`.
pub(super) fn write_rates(rates: &[Rate]) -> String {
    let written: Vec<String> = rates.iter().map(write_rate).collect();
    written.join(",")
}

pub(super) fn write_rate(rate: &Rate) -> String {
    let spread = if rate.spread { SPREAD } else { "" };
    format!("{}/{}{spread}", rate.starts, rate.period.as_millis())
}

/// The rates of a text; of the empty one, none.
pub(super) fn read_rates(text: &str) -> rusqlite::Result<Vec<Rate>> {
    text.split(',')
        .filter(|rate| !rate.is_empty())
        .map(|rate| read_rate(rate).ok_or_else(|| unreadable(format!("the rate {rate:?}"))))
        .collect()
}

const SPREAD: &str = " spread";

fn read_rate(text: &str) -> Option<Rate> {
    let (text, spread) = match text.strip_suffix(SPREAD) {
        Some(text) => (text, true),
        None => (text, false),
    };
    let (starts, ms) = text.split_once('/')?;
    Some(Rate { starts: starts.parse().ok()?, period: Duration::from_millis(ms.parse().ok()?), spread })
}

/// A sixteen-byte id in a column.
pub(super) fn read_id(row: &Row<'_>, column: usize) -> rusqlite::Result<[u8; 16]> {
    row.get(column)
}

/// An error for what no version of this store has written.
pub(super) fn unreadable(what: String) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Integer, what.into())
}
