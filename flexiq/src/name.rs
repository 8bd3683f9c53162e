//! Names of queues, tasks and prefixes: checked once, cheap to clone.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use crate::error::{Error, Result};

/// A name of a queue or task: 1 to 100 of `A-Z a-z 0-9 _ . -`.
#[derive(Clone)]
pub struct Name(Text);

#[derive(Clone)]
enum Text {
    Static(&'static str),
    Shared(Arc<str>),
}

impl Name {
    /// Checks and keeps a name; `what` is "queue", "task" or "prefix", for the message.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if it is empty, longer than 100 characters or holds another character.
    pub fn new(what: &'static str, name: impl AsRef<str>) -> Result<Self> {
        let name = name.as_ref();
        if is_valid(name) {
            return Ok(Self(Text::Shared(name.into())));
        }
        Err(Error::Invalid {
            what: format!("{what} name"),
            given: format!("{name:?}"),
            accepted: "1 to 100 of A-Z a-z 0-9 _ . -".into(),
        })
    }

    /// A name that the macro has checked: costs nothing to make or clone.
    pub const fn from_static(name: &'static str) -> Self {
        Self(Text::Static(name))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Text::Static(name) => name,
            Text::Shared(name) => name,
        }
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
        self.as_str()
    }
}

// Compared and hashed as text, so that maps of names are searched with a `&str`.
impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Name {}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
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
