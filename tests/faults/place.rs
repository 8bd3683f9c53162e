//! Where a test's store and ledgers lie.

use std::path::PathBuf;

use flexiq::Queue;

/// A store and a folder for one test, the folder removed at its end.
pub(crate) struct Place {
    folder: tempfile::TempDir,
    url: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder for the test");
        std::fs::create_dir(folder.path().join("ledger")).expect("a folder for the ledgers");
        let url = match env!("CARGO_CRATE_NAME") {
            #[cfg(feature = "redis")]
            "faults_redis" => flexiq_tests::redis_server::url(),
            _ => format!("sqlite://{}", folder.path().join("jobs.db").display()),
        };
        Self { folder, url }
    }

    /// The store's URL.
    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }

    /// Looks whether all that is stored goes together, whatever was killed and whoever still runs.
    fn look_whether_sound(&self) {
        let found = Queue::open(self.url()).blocking().and_then(|queue| queue.doctor().blocking());
        let found = found.expect("the store is checked");
        assert!(found.is_empty(), "the store is not sound: {found:#?}");
    }

    /// The folder of the ledgers.
    pub(crate) fn ledger(&self) -> PathBuf {
        self.folder.path().join("ledger")
    }
}

/// Whatever a test has done, its store is sound at the end.
impl Drop for Place {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.look_whether_sound();
        }
    }
}
