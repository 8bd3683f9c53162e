//! What SQLite's errors mean to the caller: try again, or change something.

use std::fmt;

use rusqlite::ErrorCode;

use crate::error::{Effect, Error};

/// Why a request was not carried out: the driver failed, or a verb refused.
#[derive(Debug)]
pub(super) enum Failure {
    Driver(rusqlite::Error),
    Refused(Error),
}

/// What a verb answers inside its transaction.
pub(super) type Tried<T> = Result<T, Failure>;

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Driver(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl Failure {
    /// The error to answer for a request that was rolled back.
    pub(super) fn into_error(self, place: &str) -> Error {
        match self {
            Self::Driver(error) => explain(error, place, Effect::None),
            Self::Refused(error) => error,
        }
    }
}

/// The text of SQLite's own error, for every request that one failed commit undid.
#[derive(Debug)]
pub(super) struct Told(String);

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Told {}

/// A second error like `error`, which cannot be cloned.
pub(super) fn again(error: &rusqlite::Error) -> rusqlite::Error {
    match error {
        rusqlite::Error::SqliteFailure(code, message) => {
            rusqlite::Error::SqliteFailure(*code, message.clone())
        }
        other => rusqlite::Error::ToSqlConversionFailure(Box::new(Told(other.to_string()))),
    }
}

/// Whether another connection holds the file.
pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// What a driver's error means, and what to do about it.
pub(super) fn explain(error: rusqlite::Error, place: &str, effect: Effect) -> Error {
    let reason = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            return unavailable(place, effect, "another connection holds its lock", Some(error));
        }
        Some(ErrorCode::SystemIoFailure) => {
            return unavailable(place, effect, "the file system failed", Some(error));
        }
        Some(ErrorCode::DiskFull) => {
            "the disk, or the size the database may have, is full: free some space, and finished jobs are pruned by themselves"
        }
        Some(_) if extended_code(&error) == Some(rusqlite::ffi::SQLITE_READONLY_DBMOVED) => {
            "its file was deleted, moved or replaced while it was open: put it back, or open the store anew"
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            "it cannot be written: allow this user to write the file and the folder it lies in"
        }
        Some(ErrorCode::CannotOpen) => {
            "it cannot be opened or created: check that its folder exists and may be written"
        }
        Some(ErrorCode::NotADatabase) => {
            "it is not an SQLite database, and was left as it is: give the path of one, or of a file that does not exist yet"
        }
        Some(ErrorCode::DatabaseCorrupt) => {
            "the database is damaged: run `PRAGMA integrity_check`, and restore it from a backup"
        }
        _ => {
            let reason = format!("SQLite reports: {error}");
            return Error::StoreRefused { store: place.into(), reason, source: Some(Box::new(error)) };
        }
    };
    Error::StoreRefused { store: place.into(), reason: reason.into(), source: Some(Box::new(error)) }
}

fn extended_code(error: &rusqlite::Error) -> Option<i32> {
    error.sqlite_error().map(|error| error.extended_code)
}

/// The store did not answer, or could not be reached.
pub(super) fn unavailable(
    place: &str,
    effect: Effect,
    reason: &str,
    source: Option<rusqlite::Error>,
) -> Error {
    Error::StoreUnavailable {
        store: place.into(),
        effect,
        reason: reason.into(),
        source: source.map(|error| Box::new(error) as _),
    }
}
