//! What `assert_enqueued!` becomes: generated code calls these, and nobody else.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::enqueued::{EnqueuedJob, is_secret};
use super::{TestQueue, expect};
use crate::error::Error;
use crate::task::Task;

/// A message shows so many jobs.
const MOST_SHOWN: usize = 20;

/// How many jobs there must be.
#[derive(Clone, Copy, Debug)]
pub enum Wanted {
    /// One or more.
    Some,
    /// So many.
    Exactly(usize),
}

/// A parameter, and what it must be equal to.
#[derive(Debug)]
pub struct Field {
    parameter: &'static str,
    value: Value,
}

/// A parameter that must be equal to this value, both as JSON.
#[track_caller]
pub fn field<T: Serialize + ?Sized>(parameter: &'static str, value: &T) -> Field {
    // By way of the text, as a stored value: a number that fits both ways is the same then.
    let value = serde_json::to_string(value).and_then(|json| serde_json::from_str(&json)).map_err(|source| {
        Error::Encode { what: format!("what parameter {parameter} is compared with"), source }
    });
    Field { parameter, value: expect(value) }
}

/// Refuses at compile time what is no payload parameter of the task.
#[track_caller]
pub const fn expect_parameter(task: Task, parameter: &str, refusal: &str) {
    let known = task.definition().parameters;
    let mut index = 0;
    while index < known.len() {
        if are_equal(known[index].name, parameter) {
            return;
        }
        index += 1;
    }
    panic!("{}", refusal);
}

const fn are_equal(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut index = 0;
    while index < one.len() && index < other.len() && one[index] == other[index] {
        index += 1;
    }
    index == one.len() && index == other.len()
}

/// Asserts that so many jobs of the task are stored that have these arguments.
#[track_caller]
pub fn assert_enqueued(test: &TestQueue, task: Task, wanted: Wanted, fields: &[Field]) {
    let stored = test.enqueued(task);
    let is_meant =
        |job: &EnqueuedJob| fields.iter().all(|field| job.raw(field.parameter) == Some(&field.value));
    let found = stored.iter().filter(|job| is_meant(job)).count();
    let is_so = match wanted {
        Wanted::Some => found > 0,
        Wanted::Exactly(count) => found == count,
    };
    assert!(is_so, "{}", Refusal { task, wanted, fields, found, stored: &stored });
}

/// What is told where it is not so.
struct Refusal<'a> {
    task: Task,
    wanted: Wanted,
    fields: &'a [Field],
    found: usize,
    stored: &'a [EnqueuedJob],
}

impl fmt::Display for Refusal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { task, wanted, fields, found, stored } = self;
        match wanted {
            Wanted::Some => write!(f, "no job of task {}", task.name())?,
            Wanted::Exactly(_) => write!(f, "{found} jobs of task {}", task.name())?,
        }
        for (index, Field { parameter, value }) in fields.iter().enumerate() {
            let and = if index == 0 { " with" } else { " and" };
            match is_secret(*task, parameter) {
                true => write!(f, "{and} {parameter} == •••")?,
                false => write!(f, "{and} {parameter} == {value}")?,
            }
        }
        match wanted {
            Wanted::Some => f.write_str(" is stored")?,
            Wanted::Exactly(count) => write!(f, " are stored, and there should be {count}")?,
        }
        match stored.len() {
            0 => return f.write_str("; it has no jobs at all"),
            jobs => write!(f, "; all its jobs, {jobs}:")?,
        }
        for job in stored.iter().take(MOST_SHOWN) {
            write!(f, "\n  {job}")?;
        }
        match stored.len().saturating_sub(MOST_SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n  … and {more} more"),
        }
    }
}
