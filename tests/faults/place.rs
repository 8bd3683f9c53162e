//! Where a test's store and ledgers lie.

use std::path::PathBuf;

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

    /// The folder of the ledgers.
    pub(crate) fn ledger(&self) -> PathBuf {
        self.folder.path().join("ledger")
    }
}
