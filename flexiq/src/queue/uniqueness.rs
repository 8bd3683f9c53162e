//! What makes a call the only one of its kind: what the caller said, with the task's own beneath, checked and put together
//! for the store.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::job::Due;
use crate::name::Name;
use crate::store::{OnDuplicate, Release, Unique, UniqueKey};
use crate::task::UniqueUntil;

/// What a caller says of one call.
#[derive(Default)]
pub(super) struct Uniqueness {
    pub(super) key: Option<String>,
    pub(super) at_least: Option<Duration>,
    pub(super) replaces: bool,
    pub(super) debounce: Option<Duration>,
    pub(super) throttle: Option<Duration>,
}

/// What a task says of all its calls.
pub(super) enum OfTask {
    /// Nothing.
    Any,
    /// They are the only ones by this key, until then.
    Key(String, UniqueUntil),
    /// They are, by an expression that this program does not link.
    Unlinked(UniqueUntil),
}

impl Uniqueness {
    /// By what the call is the only one, if it is, and when its job is due.
    pub(super) fn resolve(
        self,
        task: &Name,
        partition: &str,
        of_task: OfTask,
        due: Due,
    ) -> Result<(Option<Unique>, Due)> {
        self.refuse_contradictions(task, due)?;
        let (of_task, until) = match of_task {
            OfTask::Any => (None, UniqueUntil::Finish),
            OfTask::Key(key, until) => (Some(key), until),
            OfTask::Unlinked(until) if self.key.is_some() => (None, until),
            OfTask::Unlinked(_) => return Err(no_key_without_the_task(task)),
        };
        let key = match self.key.as_ref().or(of_task.as_ref()) {
            Some(text) => UniqueKey::by_text(task, text),
            None if self.debounce.or(self.throttle).is_some() => UniqueKey::of_partition(task, partition),
            None if self.replaces => return Err(no_key(".replace()", task)),
            None if self.at_least.is_some() => return Err(no_key(".unique_for(..)", task)),
            None => return Ok((None, due)),
        };
        let unique = Unique { key, release: self.release(until), on_duplicate: self.on_duplicate() };
        Ok((Some(unique), self.debounce.map_or(due, Due::In)))
    }

    fn release(&self, until: UniqueUntil) -> Release {
        let at_least = self.at_least.unwrap_or_default();
        match (self.throttle, self.debounce, until) {
            (Some(time), ..) => Release::After(time),
            // What is called for while the job runs has come too late for it: the next job is for that.
            (None, Some(_), _) | (None, None, UniqueUntil::Start) => Release::AtStart { at_least },
            (None, None, UniqueUntil::Finish) => Release::AtEnd { at_least },
        }
    }

    fn on_duplicate(&self) -> OnDuplicate {
        match self.debounce {
            Some(_) => OnDuplicate::Postpone,
            None if self.replaces => OnDuplicate::Replace,
            None => OnDuplicate::Keep,
        }
    }

    fn refuse_contradictions(&self, task: &Name, due: Due) -> Result<()> {
        let (debounces, throttles) = (self.debounce.is_some(), self.throttle.is_some());
        let contradictions = [
            (
                debounces && throttles,
                ".debounce(..) with .throttle(..)",
                "one of them: with debounce the last call of a window wins, with throttle the first",
            ),
            (
                throttles && self.replaces,
                ".throttle(..) with .replace()",
                "throttle alone, with which the first call wins; or debounce, with which the last does",
            ),
            (
                throttles && self.at_least.is_some(),
                ".throttle(..) with .unique_for(..)",
                "one of them: throttle holds the key for its time alone, unique_for at least until the job ends",
            ),
            (
                debounces && self.at_least.is_some(),
                ".debounce(..) with .unique_for(..)",
                "debounce alone: its key is free when the job starts, so that no call comes too late unseen",
            ),
            (
                debounces && due != Due::NOW,
                ".debounce(..) with .delay(..) or .at(..)",
                "debounce alone: it says when the job is due",
            ),
        ];
        match contradictions.into_iter().find(|(is_met, ..)| *is_met) {
            None => Ok(()),
            Some((_, given, accepted)) => Err(Error::Invalid {
                what: format!("call of task {task}"),
                given: given.into(),
                accepted: accepted.into(),
            }),
        }
    }
}

fn no_key(given: &str, task: &Name) -> Error {
    Error::Invalid {
        what: format!("call of task {task}"),
        given: format!("{given} without a unique key"),
        accepted: "a call of .unique_key(..) too, or a task with unique = \"args\" or unique_by".into(),
    }
}

fn no_key_without_the_task(task: &Name) -> Error {
    Error::Invalid {
        what: format!("unique key of task {task}"),
        given: "none".into(),
        accepted: "a call of .unique_key(..): the task has unique_by, and this program does not link it"
            .into(),
    }
}
