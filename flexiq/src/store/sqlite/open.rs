//! Opens a database file, sees that it is ours to use, and creates the tables.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior};

use super::failure::{explain, is_busy};
use super::options::{Location, SqliteOptions, Synchronous};
use crate::error::{Effect, Error, Result};
use crate::store::Absent;

/// The schema that this version writes, and the newest that it understands.
pub(super) const SCHEMA: u32 = 1;

/// 3.51.3 fixes a corruption that several writing processes could meet: a WAL reset during a checkpoint.
const OLDEST_SQLITE: i32 = 3_051_003;

/// Opens the connection that writes, and creates or checks the tables.
pub(super) fn open_writer(options: &SqliteOptions, place: &str) -> Result<Connection> {
    check_library(place)?;
    let mut connection = match &options.location {
        Location::Memory if options.absent == Absent::Refuse => {
            return Err(Error::StoreRefused {
                store: place.into(),
                reason: "a store in memory is there for the handle alone that opened it".into(),
                source: None,
            });
        }
        Location::Memory => {
            Connection::open_in_memory().map_err(|error| explain(error, place, Effect::None))?
        }
        Location::File(path) => {
            check_path(path, place)?;
            let extra = match options.absent {
                Absent::Create => OpenFlags::SQLITE_OPEN_CREATE,
                Absent::Refuse if path.exists() => OpenFlags::empty(),
                Absent::Refuse => return Err(absent(place, "there is no such file")),
            };
            open_file(path, extra, place)?
        }
    };
    prepare(&mut connection, options).and_then(|()| create(&mut connection)).map_err(
        |failure| match failure {
            Unfit::Driver(error) => explain(error, place, Effect::None),
            Unfit::ReadOnly => Error::StoreRefused {
                store: place.into(),
                reason: "it cannot be written: allow this user to write the file and the folder it lies in"
                    .into(),
                source: None,
            },
            Unfit::NoWal(mode) => Error::StoreRefused {
            store: place.into(),
            reason: format!(
                "its journal mode stays {mode}, and flexiq needs WAL: put it on a local disk, not on a network"
            ),
            source: None,
        },
        Unfit::NoStore => absent(place, "it is a database without flexiq's tables"),
        Unfit::Newer(found) => Error::UnsupportedSchema { store: place.into(), found, known: SCHEMA },
        },
    )?;
    Ok(connection)
}

/// Opens the connection that only reads.
pub(super) fn open_reader(path: &Path, place: &str) -> Result<Connection> {
    let mut connection = open_file(path, OpenFlags::empty(), place)?;
    connection
        .busy_handler(Some(wait_long))
        .and_then(|()| keep_statements(&connection))
        .and_then(|()| connection.pragma_update(None, "query_only", true))
        .map_err(|error| explain(error, place, Effect::None))?;
    Ok(connection)
}

/// Why a database cannot be used.
enum Unfit {
    Driver(rusqlite::Error),
    ReadOnly,
    /// Its journal mode stays as it is.
    NoWal(String),
    /// It must have the tables, and has not.
    NoStore,
    Newer(u32),
}

impl From<rusqlite::Error> for Unfit {
    fn from(error: rusqlite::Error) -> Self {
        Self::Driver(error)
    }
}

/// The refusal of a store that is not there and is not to be created.
fn absent(place: &str, why: &str) -> Error {
    Error::StoreRefused {
        store: place.into(),
        reason: format!("{why}: a worker or a producer creates a store when it opens it"),
        source: None,
    }
}

fn check_library(place: &str) -> Result<()> {
    if rusqlite::version_number() >= OLDEST_SQLITE {
        return Ok(());
    }
    Err(Error::StoreRefused {
        store: place.into(),
        reason: format!("this program is linked to SQLite {}, and flexiq needs 3.51.3", rusqlite::version()),
        source: None,
    })
}

/// Refuses what SQLite would only call "unable to open", in words that say what to change.
fn check_path(path: &Path, place: &str) -> Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let reason = if path.is_dir() {
        "it is a folder: name a file in it".into()
    } else if !folder.exists() {
        format!("the folder {} does not exist: create it first", folder.display())
    } else if !folder.is_dir() {
        format!("{} is not a folder", folder.display())
    } else {
        return Ok(());
    };
    Err(Error::StoreRefused { store: place.into(), reason, source: None })
}

fn open_file(path: &Path, extra: OpenFlags, place: &str) -> Result<Connection> {
    // No URI: a file name that begins with "file:" is a file name.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | extra;
    let mut connection =
        Connection::open_with_flags(path, flags).map_err(|error| explain(error, place, Effect::None))?;
    connection.busy_handler(Some(wait_a_little)).map_err(|error| explain(error, place, Effect::None))?;
    Ok(connection)
}

/// Keeps prepared statements as they are. Without this promise SQLite looks at the values that are bound, of a LIMIT for
/// one, and prepares the statement anew for each: 20 µs a time, a fifth of all work.
fn keep_statements(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(128);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

/// Waits for another process in steps of 1 ms, for about 100 ms: SQLite's own handler grows to steps of 100 ms,
/// which two busy processes would feel in every turn.
fn wait_a_little(tries: i32) -> bool {
    std::thread::sleep(Duration::from_millis(1));
    tries < 100
}

/// Waits for up to 5 s: a reader meets a lock only while another process recovers the file after a crash.
fn wait_long(tries: i32) -> bool {
    std::thread::sleep(Duration::from_millis(1));
    tries < 5_000
}

/// Looks at the database before anything is written to it, then sets the connection up.
fn prepare(connection: &mut Connection, options: &SqliteOptions) -> Result<(), Unfit> {
    keep_statements(connection)?;
    // The first read: what is not a database is refused here, untouched.
    patiently(|| connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())))?;
    if connection.is_readonly("main")? {
        return Err(Unfit::ReadOnly);
    }
    if let Some(found) = newer_schema(connection)? {
        return Err(Unfit::Newer(found));
    }
    // Before anything is written: other programs' databases stay as they are.
    if options.absent == Absent::Refuse && stored_schema(connection)?.is_none() {
        return Err(Unfit::NoStore);
    }
    let mode: String = patiently(|| connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)))?;
    if options.location != Location::Memory && mode != "wal" {
        return Err(Unfit::NoWal(mode));
    }
    connection.pragma_update(
        None,
        "synchronous",
        match options.synchronous {
            Synchronous::Full => "FULL",
            Synchronous::Normal => "NORMAL",
        },
    )?;
    connection.pragma_update(None, "cache_size", -64 * 1024)?;
    // 16 MiB. A job's pages are written anew by each of its moves, and copied into the file once in a checkpoint: with
    // SQLite's 4 MiB a drain spends a tenth of its time on that.
    connection.pragma_update(None, "wal_autocheckpoint", 4_000)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(())
}

/// Creates the tables, unless another process has done so: two that open a new file at once take turns here.
fn create(connection: &mut Connection) -> Result<(), Unfit> {
    patiently(|| {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if stored_schema(&transaction)?.is_none() {
            transaction.execute_batch(include_str!("sql/schema.sql"))?;
            transaction.execute(
                "INSERT INTO flexiq_meta (key, value) VALUES ('schema', ?1), ('oldest_schema', ?1)",
                [SCHEMA],
            )?;
        }
        transaction.commit()
    })?;
    match newer_schema(connection)? {
        Some(found) => Err(Unfit::Newer(found)),
        None => Ok(()),
    }
}

/// The version of a schema that this build may not use: one that says so, whatever its own number.
fn newer_schema(connection: &Connection) -> rusqlite::Result<Option<u32>> {
    let Some((schema, oldest)) = stored_schema(connection)? else { return Ok(None) };
    Ok((oldest > SCHEMA).then_some(schema))
}

/// The version of the tables, and the oldest version of flexiq's that may use them.
fn stored_schema(connection: &Connection) -> rusqlite::Result<Option<(u32, u32)>> {
    let exists = connection
        .query_row(
            "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'flexiq_meta'",
            [],
            |_| Ok(()),
        )
        .optional()?;
    if exists.is_none() {
        return Ok(None);
    }
    let read = |key| {
        connection
            .query_row("SELECT value FROM flexiq_meta WHERE key = ?1", [key], |row| row.get::<_, u32>(0))
    };
    Ok(Some((read("schema")?, read("oldest_schema")?)))
}

/// Tries for up to 5 s while others hold the file: many processes that start together all change its mode.
fn patiently<T>(mut attempt: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let start = std::time::Instant::now();
    loop {
        match attempt() {
            Err(error) if is_busy(&error) && start.elapsed() < Duration::from_secs(5) => {
                std::thread::sleep(Duration::from_millis(5));
            }
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;

    #[test]
    fn a_statement_is_planned_once_whatever_is_bound_to_it() {
        let folder = tempfile::tempdir().expect("a folder for the store");
        for location in [Location::Memory, Location::File(folder.path().join("jobs.db"))] {
            let connection = open_writer(&SqliteOptions::new(location), "the store").expect("it opens");
            for sql in [include_str!("sql/house_moments.sql"), include_str!("sql/prune_held.sql")] {
                for queue in 0..3 {
                    let mut statement = connection.prepare_cached(sql).expect("it can be planned");
                    statement
                        .query([queue])
                        .and_then(|mut rows| rows.next().map(drop))
                        .expect("it can be run");
                }
                let statement = connection.prepare_cached(sql).expect("it is planned");
                assert_eq!(statement.get_status(StatementStatus::RePrepare), 0, "{sql}");
            }
        }
    }
}
