//! A call of a task, on its way to becoming a job: the JSON object of its arguments.
//!
//! The generated `enqueue_*` function fills it; the enqueue builder finishes it.

use super::TaskDefinition;
use super::parameter::Param;
use super::payload::described;
use crate::error::{Error, Result};

/// The encoded arguments of one call.
#[derive(Debug)]
pub struct Call {
    task: &'static TaskDefinition,
    json: Vec<u8>,
    error: Option<Error>,
}

impl Call {
    /// A call of this task, without arguments yet.
    pub fn new(task: &'static TaskDefinition) -> Self {
        Self { task, json: vec![b'{'], error: None }
    }

    /// Adds one argument. The first that cannot be encoded is kept for [`finish`](Self::finish).
    pub fn put<T>(&mut self, param: &Param<T>, value: &T) {
        if self.error.is_some() {
            return;
        }
        if self.json.len() > 1 {
            self.json.push(b',');
        }
        // An identifier needs no escapes.
        let name = param.parameter().name;
        self.json.push(b'"');
        self.json.extend_from_slice(name.as_bytes());
        self.json.extend_from_slice(b"\":");
        if let Err(source) = param.encode(value, &mut self.json) {
            self.error = Some(Error::Encode { what: described(name, self.task.name), source });
        }
    }

    /// The task that is called.
    pub fn definition(&self) -> &'static TaskDefinition {
        self.task
    }

    /// The JSON object, in bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Encode`], naming the first parameter that could not be encoded.
    pub fn finish(mut self) -> Result<Vec<u8>> {
        match self.error {
            Some(error) => Err(error),
            None => {
                self.json.push(b'}');
                Ok(self.json)
            }
        }
    }
}
