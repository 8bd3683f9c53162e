//! The store that a history is played on, its clock's hands, and how everything that is on its way arrives.

use std::sync::Arc;

#[cfg(feature = "redis")]
use flexiq::internals::redis::{RedisOptions, RedisStore};
use flexiq::internals::sqlite::{Location, SqliteOptions, SqliteStore, Synchronous};
use flexiq::internals::{Clock, ManualClock, Store};
use flexiq_tests::START;
use tempfile::TempDir;

/// One store, with a handle or two.
pub(crate) struct Stand {
    pub(crate) hands: ManualClock,
    pub(crate) clock: Clock,
    pub(crate) handles: Vec<Arc<dyn Store>>,
    #[cfg(feature = "redis")]
    redis: Vec<Arc<RedisStore>>,
    _folder: Option<TempDir>,
}

impl Stand {
    fn new(folder: Option<TempDir>) -> Self {
        let (clock, hands) = Clock::manual(START);
        let handles = Vec::new();
        Self {
            hands,
            clock,
            handles,
            #[cfg(feature = "redis")]
            redis: Vec::new(),
            _folder: folder,
        }
    }

    /// In memory, where nobody looks for what other processes have written.
    pub(crate) async fn sqlite() -> Self {
        let mut stand = Self::new(None);
        stand.open_sqlite(Location::Memory).await;
        stand
    }

    /// Two handles on one file.
    pub(crate) async fn sqlite_file() -> Self {
        let folder = tempfile::tempdir().expect("the temporary folder can be written");
        let file = folder.path().join("jobs.db");
        let mut stand = Self::new(Some(folder));
        for _ in 0..2 {
            stand.open_sqlite(Location::File(file.clone())).await;
        }
        stand
    }

    async fn open_sqlite(&mut self, location: Location) {
        let mut options = SqliteOptions::new(location);
        options.clock = self.clock.clone();
        options.synchronous = Synchronous::Normal;
        self.handles.push(SqliteStore::open(options).await.expect("the store opens"));
    }

    /// Two handles, as two processes would have them.
    #[cfg(feature = "redis")]
    pub(crate) async fn redis() -> Self {
        let mut stand = Self::new(None);
        let url = flexiq_tests::redis_server::url();
        for _ in 0..2 {
            let mut options = RedisOptions::from_url(&url).expect("the URL is one of Redis");
            options.clock = stand.clock.clone();
            let store = RedisStore::open(options).await.expect("the store opens");
            stand.handles.push(store.clone());
            stand.redis.push(store);
        }
        stand
    }

    /// Lets arrive what is on its way: messages, and what is left in the background. In SQLite nothing ever is.
    pub(crate) async fn catch_up(&self) {
        #[cfg(feature = "redis")]
        loop {
            let mut has_left = false;
            for store in &self.redis {
                has_left |= store.catch_up().await.expect("the server answers");
            }
            if !has_left {
                return;
            }
        }
    }
}
