//! What a task may return, and how that becomes the outcome of its run.

use std::any::TypeId;
use std::error::Error;

use serde::Serialize;

use super::retry::outcome_of;
use crate::job::{After, Outcome, Value};

/// What a task may return: `()` or `Result<T, E>`.
#[diagnostic::on_unimplemented(
    message = "a task returns `()` or `Result<T, E>`, not `{Self}`",
    label = "write `Result<{Self}, E>`, with the error that the task may meet",
    note = "E is an error of yours, `anyhow::Error`, `Box<dyn Error + Send + Sync>` or `String`"
)]
pub trait TaskReturn {
    /// What a successful run gives.
    type Value: 'static;
    #[doc(hidden)]
    fn outcome(self, max_result: usize) -> Outcome;
}

impl TaskReturn for () {
    type Value = ();

    fn outcome(self, _max_result: usize) -> Outcome {
        Outcome::Succeeded(Value::Unit)
    }
}

impl<T: ReturnValue, E: TaskError> TaskReturn for Result<T, E> {
    type Value = T;

    fn outcome(self, max_result: usize) -> Outcome {
        match self {
            Ok(value) => succeeded(&value, max_result),
            Err(error) => outcome_of(&*error.into_boxed()),
        }
    }
}

fn succeeded<T: ReturnValue>(value: &T, limit: usize) -> Outcome {
    if TypeId::of::<T>() == TypeId::of::<()>() {
        return Outcome::Succeeded(Value::Unit);
    }
    match value.encode() {
        Ok(json) if json.len() > limit => Outcome::Succeeded(Value::TooLarge { size: json.len(), limit }),
        Ok(json) => Outcome::Succeeded(Value::Json(json)),
        // The same value would fail again, and what the task does would be done twice.
        Err(error) => Outcome::Failed {
            error: format!("the value that the task returned cannot be encoded as JSON: {error}"),
            after: After::Never,
        },
    }
}

/// The `T` of a task's `Result<T, E>`.
#[diagnostic::on_unimplemented(
    message = "a task cannot return a value of type `{Self}`: it is stored as JSON",
    label = "not `Serialize + 'static`",
    note = "write `#[derive(serde::Serialize)]` on the type, or return `Result<(), E>`"
)]
pub trait ReturnValue: 'static {
    #[doc(hidden)]
    fn encode(&self) -> serde_json::Result<Vec<u8>>;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + 'static> ReturnValue for T {
    fn encode(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }
}

/// The `E` of a task's `Result<T, E>`.
#[diagnostic::on_unimplemented(
    message = "a task cannot fail with `{Self}`: it is no error that can be sent to another thread",
    label = "not `Into<Box<dyn Error + Send + Sync>>`",
    note = "use an error of yours, `anyhow::Error`, `Box<dyn Error + Send + Sync>` (with both) or `String`"
)]
pub trait TaskError {
    #[doc(hidden)]
    fn into_boxed(self) -> Box<dyn Error + Send + Sync>;
}

#[diagnostic::do_not_recommend]
impl<E: Into<Box<dyn Error + Send + Sync>>> TaskError for E {
    fn into_boxed(self) -> Box<dyn Error + Send + Sync> {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn a_value_is_kept_up_to_the_limit_and_unit_is_no_value() {
        type Returned<T> = Result<T, String>;
        let succeeded = |value| Outcome::Succeeded(value);
        assert_eq!(().outcome(9), succeeded(Value::Unit));
        assert_eq!(Returned::Ok(()).outcome(9), succeeded(Value::Unit));
        assert_eq!(Returned::Ok(None::<u8>).outcome(9), succeeded(Value::Json(b"null".into())));
        assert_eq!(Returned::Ok("1234567").outcome(9), succeeded(Value::Json(b"\"1234567\"".into())));
        assert_eq!(Returned::Ok("12345678").outcome(9), succeeded(Value::TooLarge { size: 10, limit: 9 }));
    }

    #[test]
    fn a_value_that_cannot_be_encoded_is_a_failure_without_retry() {
        let map = HashMap::from([((1, 2), 3)]);
        let Outcome::Failed { error, after: After::Never } = Ok::<_, String>(map).outcome(100) else {
            panic!("it cannot be encoded")
        };
        assert!(error.contains("cannot be encoded as JSON"), "{error}");
    }
}
