//! The id of a job.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use crate::error::Error;

/// The id of a job: a UUID, by default one of version 7, made by the producer.
///
/// Enqueueing the same id again stores nothing and answers the job that is there, so that a call whose answer was
/// lost may be sent again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(Uuid);

impl JobId {
    /// A new id, unlike any other.
    #[allow(clippy::new_without_default, reason = "two defaults would differ")]
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }

    /// The sixteen bytes of the UUID.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// The id of these sixteen bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }
}

impl From<Uuid> for JobId {
    fn from(uuid: Uuid) -> Self {
        Self(uuid)
    }
}

impl FromStr for JobId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        text.parse().map(Self).map_err(|_| Error::Invalid {
            what: "job id".into(),
            given: format!("{text:?}"),
            accepted: "a UUID, such as 0197c5d2-7a3e-7b60-8d11-2f4b6f0c9a55".into(),
        })
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
