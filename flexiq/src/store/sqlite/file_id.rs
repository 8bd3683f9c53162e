//! Which file a path names: two handles on one file share their bells, and a file that is replaced under its path is
//! noticed before jobs are lost into what nobody will open again.

use std::io;
use std::path::{Path, PathBuf};

/// What makes two paths one file: the file's number, where there is one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum FileId {
    #[cfg(unix)]
    Inode(u64, u64),
    #[cfg(not(unix))]
    Path(PathBuf),
}

impl FileId {
    /// The file that a path names now.
    #[cfg(unix)]
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(path).map(|file| Self::Inode(file.dev(), file.ino()))
    }

    /// The file that a path names now.
    #[cfg(not(unix))]
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        std::fs::canonicalize(path).map(Self::Path)
    }
}

/// The file that was opened.
#[derive(Debug)]
pub(super) struct OpenedFile {
    path: PathBuf,
    id: FileId,
}

impl OpenedFile {
    /// The file at this path, which has just been opened.
    pub(super) fn at(path: &Path) -> io::Result<Self> {
        // Absolute, for the process may change its directory.
        let path = std::path::absolute(path)?;
        Ok(Self { id: FileId::of(&path)?, path })
    }

    pub(super) fn id(&self) -> &FileId {
        &self.id
    }

    /// An error as SQLite's own for a moved file, if the path names another file now, or none.
    pub(super) fn check(&self) -> rusqlite::Result<()> {
        if FileId::of(&self.path).is_ok_and(|id| id == self.id) {
            return Ok(());
        }
        let moved = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_READONLY_DBMOVED);
        Err(rusqlite::Error::SqliteFailure(moved, None))
    }
}
