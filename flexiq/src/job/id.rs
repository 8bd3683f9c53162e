//! The id of a job.

use std::str::FromStr;

use uuid::Uuid;

use crate::error::Error;
use crate::id::id;

id! {
    /// The id of a job: a UUID, by default one of version 7, made by the producer.
    ///
    /// Enqueueing the same id again stores nothing and answers the job that is there, so that a call whose answer was
    /// lost may be sent again.
    JobId
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
