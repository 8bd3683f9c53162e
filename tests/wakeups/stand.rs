//! The store that a history is played on, its clock's hands, and how everything that is on its way arrives.

use std::sync::Arc;
#[cfg(feature = "redis")]
use std::sync::LazyLock;

#[cfg(feature = "redis")]
use flexiq::JobId;
#[cfg(feature = "redis")]
use flexiq::internals::redis::{RedisOptions, RedisStore};
use flexiq::internals::sqlite::{Location, SqliteOptions, SqliteStore, Synchronous};
use flexiq::internals::{Clock, ManualClock, Store};
use flexiq_tests::START;
#[cfg(feature = "redis")]
use flexiq_tests::{
    proxy::{Cut, Proxy},
    redis_server::{self, Server},
};
use tempfile::TempDir;

/// One store, with a handle or two.
pub(crate) struct Stand {
    pub(crate) hands: ManualClock,
    pub(crate) clock: Clock,
    pub(crate) handles: Vec<Arc<dyn Store>>,
    #[cfg(feature = "redis")]
    redis: Vec<Arc<RedisStore>>,
    #[cfg(feature = "redis")]
    proxy: Option<Proxy>,
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
            #[cfg(feature = "redis")]
            proxy: None,
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
        stand.open_redis(&redis_server::url()).await;
        stand
    }

    /// Two handles whose connections can be cut.
    #[cfg(feature = "redis")]
    pub(crate) async fn redis_cut() -> Self {
        /// A server that a proxy can stand before, whatever the others use.
        static SERVER: LazyLock<Server> = LazyLock::new(Server::start);
        let mut stand = Self::new(None);
        let proxy = Proxy::before(&SERVER);
        stand.open_redis(&format!("{}?prefix=test-{}", proxy.url(), JobId::new())).await;
        stand.proxy = Some(proxy);
        stand
    }

    #[cfg(feature = "redis")]
    async fn open_redis(&mut self, url: &str) {
        for _ in 0..2 {
            let mut options = RedisOptions::from_url(url).expect("the URL is one of Redis");
            options.clock = self.clock.clone();
            let store = RedisStore::open(options).await.expect("the store opens");
            self.handles.push(store.clone());
            self.redis.push(store);
        }
    }

    /// Cuts the connection of a request that is still to come, the next being the first; where there is one. One cut must
    /// be over before the next: what is lost twice in a row is told to the caller, or a beat mends it.
    pub(crate) async fn cut(&self, request: u64, is_heard: bool) {
        self.catch_up().await;
        #[cfg(feature = "redis")]
        if let Some(proxy) = &self.proxy
            && proxy.has_cut()
        {
            let cut = if is_heard { Cut::Answer } else { Cut::Request };
            proxy.cut(proxy.requests() + request, cut);
        }
        #[cfg(not(feature = "redis"))]
        let _ = (request, is_heard);
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
