//! The store that a history is played on, and its clock's hands.

use std::sync::Arc;

#[cfg(feature = "redis")]
use flexiq::internals::redis::{RedisOptions, RedisStore};
use flexiq::internals::sqlite::{Location, SqliteOptions, SqliteStore, Synchronous};
use flexiq::internals::{Clock, ManualClock, Store};
use flexiq_tests::START;
use tempfile::TempDir;

/// One store, with two handles as two processes would have them.
pub(crate) struct Stand {
    pub(crate) hands: ManualClock,
    pub(crate) clock: Clock,
    pub(crate) handles: Vec<Arc<dyn Store>>,
    _folder: Option<TempDir>,
}

/// A kind of store.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Sqlite,
    #[cfg(feature = "redis")]
    Redis,
}

impl Stand {
    pub(crate) async fn open(kind: Kind) -> Self {
        match kind {
            Kind::Sqlite => Self::sqlite().await,
            #[cfg(feature = "redis")]
            Kind::Redis => Self::redis().await,
        }
    }

    async fn sqlite() -> Self {
        let (clock, hands) = Clock::manual(START);
        let folder = tempfile::tempdir().expect("the temporary folder can be written");
        let mut handles: Vec<Arc<dyn Store>> = Vec::new();
        for _ in 0..2 {
            let mut options = SqliteOptions::new(Location::File(folder.path().join("jobs.db")));
            options.clock = clock.clone();
            // No power fails here.
            options.synchronous = Synchronous::Normal;
            handles.push(SqliteStore::open(options).await.expect("the store opens"));
        }
        Self { hands, clock, handles, _folder: Some(folder) }
    }

    #[cfg(feature = "redis")]
    async fn redis() -> Self {
        let (clock, hands) = Clock::manual(START);
        let url = flexiq_tests::redis_server::url();
        let mut handles: Vec<Arc<dyn Store>> = Vec::new();
        for _ in 0..2 {
            let mut options = RedisOptions::from_url(&url).expect("the URL is one of Redis");
            options.clock = clock.clone();
            handles.push(RedisStore::open(options).await.expect("the store opens"));
        }
        Self { hands, clock, handles, _folder: None }
    }
}
