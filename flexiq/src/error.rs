//! What can go wrong with flexiq itself, sorted by what the caller will do about it.
//!
//! A task's own error is not ours: it becomes an outcome of its run. Types of store drivers stay boxed, and no
//! message holds a payload or a password.

use std::net::SocketAddr;
use std::{fmt, io};

use crate::job::{JobFailure, JobId};

/// A result with flexiq's own [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a driver below us, kept as the source.
pub(crate) type Source = Box<dyn std::error::Error + Send + Sync>;

/// What can go wrong with flexiq itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The URL names no store that this build can open.
    #[error(
        "invalid store URL {url:?}: {reason}; write redis://host, sqlite://jobs.db, sqlite:///var/jobs.db or sqlite::memory:"
    )]
    InvalidUrl {
        /// What was given, without its password.
        url: String,
        /// What is wrong with it.
        reason: String,
    },

    /// The store did not answer, or could not be reached. The call may be tried again.
    #[error("{store} is unavailable ({effect}): {reason}")]
    StoreUnavailable {
        /// The store's file or address.
        store: String,
        /// Whether the call took effect.
        effect: Effect,
        /// What is known of the cause.
        reason: String,
        /// The driver's error, if it gave one.
        #[source]
        source: Option<Source>,
    },

    /// The store answered, and refused: full, read-only, forbidden, of another kind. Nothing was stored.
    #[error("{store} refused: {reason}")]
    StoreRefused {
        /// The store's file or address.
        store: String,
        /// What it refused and what to change.
        reason: String,
        /// The driver's error, if it gave one.
        #[source]
        source: Option<Source>,
    },

    /// The store was written by a version of flexiq that this one does not understand.
    #[error("{store} has schema version {found}, and this flexiq knows up to {known}: use a newer flexiq")]
    UnsupportedSchema {
        /// The store's file or address.
        store: String,
        /// The version found in it.
        found: u32,
        /// The newest version that this build knows.
        known: u32,
    },

    /// The queue holds as many pending jobs as it may, or what is left is kept for producers that
    /// [wait](crate::Enqueue::or_wait). Nothing was stored.
    #[error("queue {queue} is full: {pending} pending jobs, and max_pending is {max_pending}")]
    QueueFull {
        /// The queue.
        queue: String,
        /// Its limit.
        max_pending: u64,
        /// The pending jobs it held.
        pending: u64,
    },

    /// The partition holds as many pending jobs as it may, or what is left is kept for producers that
    /// [wait](crate::Enqueue::or_wait). Nothing was stored.
    #[error(
        "partition {partition:?} of task {task} is full: {pending} pending jobs, and max_pending_per_partition is \
         {max_pending}"
    )]
    PartitionFull {
        /// The task.
        task: String,
        /// The partition.
        partition: String,
        /// Its limit.
        max_pending: u64,
        /// The pending jobs it held.
        pending: u64,
    },

    /// The call's arguments are too large to store. Nothing was stored.
    #[error(
        "the payload of task {task} has {size} bytes and the limit is {limit}: \
         store large data elsewhere and enqueue where it lies, or raise Queue::builder(url).max_payload(..)"
    )]
    PayloadTooLarge {
        /// The task.
        task: String,
        /// Bytes of the encoded arguments.
        size: usize,
        /// Bytes allowed.
        limit: usize,
    },

    /// The job succeeded, but its value was too large to keep.
    #[error("job {job} succeeded, but its value has {size} bytes and the limit is {limit}")]
    ResultTooLarge {
        /// The job.
        job: JobId,
        /// Bytes of the encoded value.
        size: usize,
        /// Bytes allowed.
        limit: usize,
    },

    /// The batch holds too many jobs or bytes. Nothing was stored.
    #[error(
        "a batch of {jobs} jobs and {bytes} bytes is too large: at most 10,000 jobs and 16 MiB; send several"
    )]
    BatchTooLarge {
        /// Jobs in the batch.
        jobs: usize,
        /// Bytes of their payloads.
        bytes: usize,
    },

    /// The batch holds jobs of two queues. Nothing was stored.
    #[error(
        "a batch is stored in one queue, and this one names {first} and {second}: send one batch for each"
    )]
    BatchAcrossQueues {
        /// The first job's queue.
        first: String,
        /// The other queue.
        second: String,
    },

    /// An argument or value could not be encoded as JSON. Nothing was stored.
    #[error("{what} cannot be encoded as JSON: {source}")]
    Encode {
        /// The parameter or value, in words.
        what: String,
        /// The encoder's error.
        source: serde_json::Error,
    },

    /// A stored payload or value does not fit the type that was asked for.
    #[error("{what} cannot be decoded: {reason}")]
    Decode {
        /// The parameter or value, in words.
        what: String,
        /// What did not fit, without the data itself.
        reason: String,
    },

    /// No job has this id: it never existed, or its retention is over.
    #[error("no job {0}: it was never stored, or its result_ttl or retention is over")]
    UnknownJob(JobId),

    /// A task or queue of this name is neither linked here nor known to the store.
    #[error("unknown {what} {name:?}{}", nearest_hint(nearest.as_deref()))]
    Unknown {
        /// "task" or "queue".
        what: &'static str,
        /// What was given.
        name: String,
        /// The known name that is most like it.
        nearest: Option<String>,
    },

    /// The job cannot be retried, because another has its unique key meanwhile. Nothing was changed.
    #[error("job {job} is not retried: job {owner} has its unique key; wait for its end, or cancel it")]
    KeyTaken {
        /// The job that was to be retried.
        job: JobId,
        /// The job that has the key.
        owner: JobId,
    },

    /// The job ended otherwise than by success.
    #[error(transparent)]
    JobFailed(Box<JobFailure>),

    /// The job had not ended when the time given to `JobHandle::result_within` was over.
    #[error("job {0} has not ended yet")]
    NotEnded(JobId),

    /// A value outside what is accepted.
    #[error("invalid {what}: {given}; accepted: {accepted}")]
    Invalid {
        /// What the value is for.
        what: String,
        /// What was given.
        given: String,
        /// What is accepted.
        accepted: String,
    },

    /// Two linked tasks have one name.
    #[error(
        "two tasks are named {name:?}: {first} and {second}; give one of them #[flexiq::task(name = \"…\")]"
    )]
    DuplicateTask {
        /// The name.
        name: String,
        /// Where the one is.
        first: String,
        /// Where the other is.
        second: String,
    },

    /// Tasks of this worker need state that it was not given.
    #[error("missing state: {}; the worker was given {}", missing.join(", "), given_states(given))]
    MissingState {
        /// Each as `renderer: my_app::Renderer of task build_report`.
        missing: Vec<String>,
        /// Type names of what was given.
        given: Vec<String>,
    },

    /// The worker has no task to serve.
    #[error("nothing to serve: {reason}")]
    NothingToServe {
        /// Why, and what to write.
        reason: String,
    },

    /// The worker cannot answer how it is on the address that it was given.
    #[error("cannot answer /live and /ready on {address}: {source}; give health_on a free port of this host")]
    HealthAddress {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },

    /// The attribute is understood, but its engine is not part of this version.
    #[error(
        "task {task} uses {argument}, which this version of flexiq does not run yet: remove it, or wait for a version that does"
    )]
    NotBuilt {
        /// The task.
        task: String,
        /// The argument of `#[flexiq::task]`.
        argument: String,
    },
}

/// Whether a call that failed took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// It certainly did not.
    None,
    /// It may have. Sending the same job id again is safe.
    Unknown,
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "nothing was stored",
            Self::Unknown => "whether it was stored is unknown; sending the same id again is safe",
        })
    }
}

impl Error {
    /// Whether the same call may succeed later without anything being changed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::StoreUnavailable { .. } | Self::QueueFull { .. })
    }
}

fn nearest_hint(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean {name:?}?")).unwrap_or_default()
}

fn given_states(given: &[String]) -> String {
    if given.is_empty() { "none".into() } else { given.join(", ") }
}
