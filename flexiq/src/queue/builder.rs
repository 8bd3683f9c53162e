//! Opening a store: its URL and the settings of this handle.

use std::sync::Arc;
use std::time::Duration;

use super::{Answer, Queue, Shared};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::store::Store;

/// A store to be opened, and the settings of the handle.
#[derive(Clone, Debug)]
#[must_use = "a store is opened when `.open()` is awaited"]
pub struct QueueBuilder {
    url: String,
    timeout: Duration,
    max_payload: usize,
    max_result: usize,
    clock: Clock,
}

impl QueueBuilder {
    pub(super) fn new(url: String) -> Self {
        Self {
            url,
            timeout: Duration::from_secs(5),
            max_payload: 1024 * 1024,
            max_result: 1024 * 1024,
            clock: Clock::system(),
        }
    }

    /// How long a call waits for the store before it gives up, saying whether it took effect. Defaults to 5 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Bytes of one call's encoded arguments, beyond which it is refused. Defaults to 1 MiB.
    pub fn max_payload(mut self, bytes: usize) -> Self {
        self.max_payload = bytes;
        self
    }

    /// Bytes of one encoded value, beyond which workers of this handle do not keep it. Defaults to 1 MiB.
    pub fn max_result(mut self, bytes: usize) -> Self {
        self.max_result = bytes;
        self
    }

    /// Another clock, for tests.
    #[cfg(feature = "internals")]
    #[doc(hidden)]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Opens the store, creating it if it is not there.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidUrl`] if the URL names no store that this build can open, and what the store says if it cannot
    /// be opened.
    pub fn open(self) -> Answer<Queue> {
        Answer::new(async move {
            if self.timeout.is_zero() {
                return Err(Error::Invalid {
                    what: "timeout".into(),
                    given: "0 s".into(),
                    accepted: "a time that a store can answer in, such as Duration::from_secs(5)".into(),
                });
            }
            let store = open_store(&self).await?;
            let shared = Shared { store, max_payload: self.max_payload, max_result: self.max_result };
            Ok(Queue { shared: Arc::new(shared) })
        })
    }
}

/// An URL for messages: what stands between the colon and the `@` of its user is a password.
fn masked(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let authority = rest.find('/').unwrap_or(rest.len());
    match rest[..authority].rfind('@') {
        Some(at) => {
            let user = rest[..at].split(':').next().unwrap_or_default();
            format!("{scheme}://{user}:•••{}", &rest[at..])
        }
        None => url.to_owned(),
    }
}

#[cfg(feature = "sqlite")]
async fn open_store(settings: &QueueBuilder) -> Result<Arc<dyn Store>> {
    use crate::store::sqlite::{SqliteOptions, SqliteStore};

    let mut options = SqliteOptions::from_url(&settings.url).map_err(|error| match error {
        Error::InvalidUrl { url, reason } => Error::InvalidUrl { url: masked(&url), reason },
        other => other,
    })?;
    options.timeout = settings.timeout;
    options.clock = settings.clock.clone();
    Ok(SqliteStore::open(options).await?)
}

#[cfg(not(feature = "sqlite"))]
async fn open_store(settings: &QueueBuilder) -> Result<Arc<dyn Store>> {
    Err(Error::InvalidUrl {
        url: masked(&settings.url),
        reason: "this build of flexiq has no store: enable its feature `sqlite`".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_an_url_is_never_shown() {
        for (url, shown) in [
            ("redis://:secret@localhost", "redis://:•••@localhost"),
            ("redis://ada:se:c@ret@localhost/1?prefix=shop", "redis://ada:•••@localhost/1?prefix=shop"),
            ("redis://localhost", "redis://localhost"),
            ("sqlite:///var/a@b.db", "sqlite:///var/a@b.db"),
            ("nonsense", "nonsense"),
        ] {
            assert_eq!(masked(url), shown);
        }
    }
}
