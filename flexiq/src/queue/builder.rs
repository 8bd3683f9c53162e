//! Opening a store: its URL and the settings of this handle.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{Answer, Queue, Shared, limits};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::name::Name;
use crate::store::{Absent, Limits, Store};

/// A store to be opened, and the settings of the handle.
#[derive(Clone)]
#[must_use = "a store is opened when `.open()` is awaited"]
pub struct QueueBuilder {
    url: String,
    timeout: Duration,
    max_payload: usize,
    max_result: usize,
    limits: Vec<(String, Limit)>,
    clock: Clock,
    absent: Absent,
}

/// A limit that this handle declares for a queue, as it was written.
#[derive(Clone, Debug)]
enum Limit {
    Concurrency(u32),
    Rate(String),
    MaxPending(u64),
}

impl QueueBuilder {
    pub(super) fn new(url: String) -> Self {
        Self {
            url,
            timeout: Duration::from_secs(5),
            max_payload: 1024 * 1024,
            max_result: 1024 * 1024,
            limits: Vec::new(),
            clock: Clock::system(),
            absent: Absent::default(),
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

    /// Refuses enqueues of this handle that would let `queue` hold more than `jobs` pending jobs: scheduled or ready.
    ///
    /// It is checked where the jobs are stored, so that no enqueue passes it by one, from however many producers that
    /// declare the same. [`Queue::set_queue_max_pending`] stands above it. Queues without it pay nothing.
    pub fn max_pending(self, queue: impl Into<String>, jobs: u64) -> Self {
        self.limit(queue, Limit::MaxPending(jobs))
    }

    /// Declares, for the workers of this handle, that at most `jobs` jobs of `queue` run at once on the whole fleet.
    ///
    /// Of live workers that declare differently the youngest holds; [`Queue::set_queue_concurrency`] stands above all.
    pub fn queue_concurrency(self, queue: impl Into<String>, jobs: u32) -> Self {
        self.limit(queue, Limit::Concurrency(jobs))
    }

    /// Declares, for the workers of this handle, how often jobs of `queue` may start on the whole fleet: `"100/m"`.
    ///
    /// Of live workers that declare differently the youngest holds; [`Queue::set_queue_rate_limit`] stands above all.
    pub fn queue_rate_limit(self, queue: impl Into<String>, rate: impl Into<String>) -> Self {
        self.limit(queue, Limit::Rate(rate.into()))
    }

    /// Refuses to open a store that is not there, instead of creating it: nothing is written for a URL that was mistyped.
    ///
    /// For programs that only look at what others do, such as the command line.
    pub fn must_exist(mut self) -> Self {
        self.absent = Absent::Refuse;
        self
    }

    fn limit(mut self, queue: impl Into<String>, limit: Limit) -> Self {
        self.limits.push((queue.into(), limit));
        self
    }

    /// Another clock, for tests.
    #[cfg(feature = "internals")]
    #[doc(hidden)]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Opens the store, creating it if it is not there, unless it [`must_exist`](Self::must_exist).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidUrl`] if the URL names no store that this build can open, [`Error::StoreRefused`] if it must exist
    /// and does not, and what the store says if it cannot be opened.
    pub fn open(self) -> Answer<Queue> {
        Answer::new(async move {
            if self.timeout.is_zero() {
                return Err(Error::Invalid {
                    what: "timeout".into(),
                    given: "0 s".into(),
                    accepted: "a time that a store can answer in, such as Duration::from_secs(5)".into(),
                });
            }
            let limits = declared(&self.limits)?;
            let store = open_store(&self).await?;
            let Self { timeout, max_payload, max_result, .. } = self;
            let shared = Shared { store, timeout, max_payload, max_result, limits, follow: None };
            Ok(Queue { shared: Arc::new(shared) })
        })
    }
}

impl fmt::Debug for QueueBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueBuilder")
            .field("url", &masked(&self.url))
            .field("timeout", &self.timeout)
            .field("max_payload", &self.max_payload)
            .field("max_result", &self.max_result)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// The limits of each queue, checked; a later one of the same kind replaces an earlier.
fn declared(limits: &[(String, Limit)]) -> Result<BTreeMap<Name, Limits>> {
    let mut declared: BTreeMap<Name, Limits> = BTreeMap::new();
    for (queue, limit) in limits {
        let limits = declared.entry(Name::new("queue", queue)?).or_default();
        match limit {
            Limit::Concurrency(jobs) => {
                limits.max_concurrent = Some(limits::concurrency(*jobs, "pause_queue")?)
            }
            Limit::Rate(rate) => limits.rates = limits::rates(rate)?,
            Limit::MaxPending(jobs) => limits.max_pending = Some(limits::max_pending(*jobs)?),
        }
    }
    Ok(declared)
}

/// An URL for messages: what stands between the colon and the `@` of its user is a password.
pub(crate) fn masked(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    // A password may hold a slash and, written wrongly, a question mark. The path of a SQLite file may hold an @ and no
    // password.
    let query = rest.find('?').unwrap_or(rest.len());
    let at = if scheme == "sqlite" { None } else { rest[..query].rfind('@').or_else(|| rest.rfind('@')) };
    match at {
        Some(at) => {
            let user = rest[..at].split(':').next().unwrap_or_default();
            format!("{scheme}://{user}:•••{}", &rest[at..])
        }
        None => url.to_owned(),
    }
}

/// Opens the store that the URL's scheme names.
async fn open_store(settings: &QueueBuilder) -> Result<Arc<dyn Store>> {
    let scheme = settings.url.split_once(':').map_or("", |(scheme, _)| scheme);
    let opened = match scheme {
        "redis" | "rediss" | "redis+sentinel" | "redis+cluster" | "unix" => open_redis(settings).await,
        _ => open_sqlite(settings).await,
    };
    opened.map_err(|error| match error {
        Error::InvalidUrl { url, reason } => Error::InvalidUrl { url: masked(&url), reason },
        other => other,
    })
}

#[cfg(feature = "sqlite")]
async fn open_sqlite(settings: &QueueBuilder) -> Result<Arc<dyn Store>> {
    use crate::store::sqlite::{SqliteOptions, SqliteStore};

    let mut options = SqliteOptions::from_url(&settings.url)?;
    options.timeout = settings.timeout;
    options.clock = settings.clock.clone();
    options.absent = settings.absent;
    Ok(SqliteStore::open(options).await?)
}

#[cfg(not(feature = "sqlite"))]
async fn open_sqlite(settings: &QueueBuilder) -> Result<Arc<dyn Store>> {
    Err(not_compiled(settings, "sqlite"))
}

#[cfg(feature = "redis")]
async fn open_redis(settings: &QueueBuilder) -> Result<Arc<dyn Store>> {
    use crate::store::redis::{RedisOptions, RedisStore};

    let mut options = RedisOptions::from_url(&settings.url)?;
    options.timeout = settings.timeout;
    options.clock = settings.clock.clone();
    options.absent = settings.absent;
    Ok(RedisStore::open(options).await?)
}

#[cfg(not(feature = "redis"))]
async fn open_redis(settings: &QueueBuilder) -> Result<Arc<dyn Store>> {
    Err(not_compiled(settings, "redis"))
}

#[cfg(not(all(feature = "sqlite", feature = "redis")))]
fn not_compiled(settings: &QueueBuilder, feature: &str) -> Error {
    Error::InvalidUrl {
        url: settings.url.clone(),
        reason: format!("this build of flexiq does not have its store: enable the feature `{feature}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_an_url_is_never_shown() {
        for (url, shown) in [
            ("redis://:secret@localhost", "redis://:•••@localhost"),
            ("redis://ada:se:c@ret@localhost/1?prefix=shop", "redis://ada:•••@localhost/1?prefix=shop"),
            ("redis://ada:se/cret@localhost/1", "redis://ada:•••@localhost/1"),
            ("redis://ada:se?c@ret@localhost/1", "redis://ada:•••@localhost/1"),
            ("rediss://ada:x@h?ca=/tmp/a@b.pem", "rediss://ada:•••@h?ca=/tmp/a@b.pem"),
            ("redis://localhost", "redis://localhost"),
            ("sqlite:///var/a@b.db", "sqlite:///var/a@b.db"),
            ("nonsense", "nonsense"),
        ] {
            assert_eq!(masked(url), shown);
        }
    }
}
