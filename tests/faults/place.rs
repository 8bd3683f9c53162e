//! Where a test's store and ledgers lie.

use std::path::PathBuf;

/// A folder for one test, removed at its end.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder for the test");
        std::fs::create_dir(folder.path().join("ledger")).expect("a folder for the ledgers");
        Self { folder }
    }

    /// The store's file.
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("jobs.db")
    }

    /// The store's URL.
    pub(crate) fn url(&self) -> String {
        format!("sqlite://{}", self.file().display())
    }

    /// The folder of the ledgers.
    pub(crate) fn ledger(&self) -> PathBuf {
        self.folder.path().join("ledger")
    }
}
