//! Names of queues, tasks and prefixes: checked once, cheap to clone.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::error::{Error, Result};

/// A name of a queue or task: 1 to 100 of `A-Z a-z 0-9 _ . -`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    /// Checks and keeps a name; `what` is "queue", "task" or "prefix", for the message.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if it is empty, longer than 100 characters or holds another character.
    pub fn new(what: &'static str, name: impl AsRef<str>) -> Result<Self> {
        let name = name.as_ref();
        if is_valid(name) {
            return Ok(Self(name.into()));
        }
        Err(Error::Invalid {
            what: format!("{what} name"),
            given: format!("{name:?}"),
            accepted: "1 to 100 of A-Z a-z 0-9 _ . -".into(),
        })
    }
}

/// Whether `name` may name a queue, a task or a prefix.
pub(crate) fn is_valid(name: &str) -> bool {
    (1..=100).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_refused_at_its_edges() {
        for good in ["a", "Reports_2.eu-north", &"x".repeat(100)] {
            assert_eq!(&*Name::new("queue", good).expect(good), good);
        }
        for bad in ["", " ", "a b", "a:b", "{a}", "ä", &"x".repeat(101)] {
            let error = Name::new("queue", bad).expect_err(bad).to_string();
            assert!(error.starts_with("invalid queue name"), "{error}");
        }
    }
}
