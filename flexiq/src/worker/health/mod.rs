//! How a worker is, for whoever decides whether to start it anew or to count on it.
//!
//! `vitals` reads the signs of pump, heartbeat and store; here is what they mean. Nothing here asks the store, so that the
//! answer comes also when the store does not. `http` (feature `health`) gives the answer to a probe.

#[cfg(feature = "health")]
mod http;
#[cfg(feature = "health")]
mod request;
mod vitals;

use std::fmt;
use std::time::Duration;

#[cfg(feature = "health")]
pub(super) use http::{Answerer, Listener};
pub(super) use vitals::{Pulse, Vitals};

/// How a worker is: whether it must be started anew, and whether it can be counted on. From
/// [`Worker::health`](crate::Worker::health).
///
/// ```
/// # #[flexiq::task]
/// # async fn salute() {}
/// # #[tokio::main]
/// # async fn main() -> flexiq::Result<()> {
/// # let queue = flexiq::Queue::open("sqlite::memory:").await?;
/// let worker = queue.worker().tasks([task_salute()]).start().await?;
/// let health = worker.health();
/// assert!(health.is_live() && health.is_ready(), "{health}");
/// worker.shutdown().await
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    troubles: Vec<Trouble>,
}

/// What is wrong with a worker, in words by its `Display`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trouble {
    /// Its pump has not come round for this long, which is more than half a minute: nothing is claimed and nothing finished.
    /// Most often a task that never yields holds up the runtime.
    PumpStill(Duration),
    /// No beat has ended for this long, neither answered nor failed: more than three times what one may take, from the beat
    /// before to its answer.
    HeartbeatStill(Duration),
    /// Its store does not answer, or refuses. The worker goes on by itself when the store is back.
    StoreAway,
    /// It was told to stop, and claims nothing more.
    Stopping,
}

impl Health {
    /// Whether the worker goes on by itself; if not, it must be started anew. A store that is away does not end this.
    pub fn is_live(&self) -> bool {
        self.deadly().next().is_none()
    }

    /// Whether the worker takes jobs, as far as it knows: it is live, reaches its store and was not told to stop.
    pub fn is_ready(&self) -> bool {
        self.troubles.is_empty()
    }

    /// Why it is not ready; empty if it is.
    pub fn troubles(&self) -> &[Trouble] {
        &self.troubles
    }

    /// Why it is not live.
    fn deadly(&self) -> impl Iterator<Item = &Trouble> {
        self.troubles.iter().filter(|trouble| trouble.is_deadly())
    }
}

impl Trouble {
    /// Whether only a new start ends it.
    pub fn is_deadly(&self) -> bool {
        matches!(self, Self::PumpStill(_) | Self::HeartbeatStill(_))
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_ready() { f.write_str("ready") } else { f.write_str(&in_words(&self.troubles)) }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PumpStill(time) => write!(
                f,
                "the pump has stood still for {} s: does an async task hold up the runtime?",
                time.as_secs()
            ),
            Self::HeartbeatStill(time) => {
                write!(f, "the heartbeat has stood still for {} s", time.as_secs())
            }
            Self::StoreAway => f.write_str("the store is away, or refuses"),
            Self::Stopping => f.write_str("the worker stops"),
        }
    }
}

fn in_words<'a>(troubles: impl IntoIterator<Item = &'a Trouble>) -> String {
    let words: Vec<String> = troubles.into_iter().map(Trouble::to_string).collect();
    words.join("; ")
}
