//! keep_sample: a sample of what waits is kept, and of those before only the newest.

use rusqlite::{Connection, params};

use super::failure::Tried;
use super::write::Write;
use crate::clock::Timestamp;
use crate::store::samples::{SAMPLES_KEPT, StoredSample};

/// Keeps a sample, unless somebody else has kept one after the one that its writer saw.
pub(super) fn keep_sample(write: &mut Write<'_>, after: Option<Timestamp>, text: &str) -> Tried<bool> {
    let newest = samples(write.connection)?.pop().map(|sample| sample.at);
    if newest != after {
        return Ok(false);
    }
    write
        .connection
        .prepare_cached(include_str!("sql/samples_keep.sql"))?
        .execute(params![write.now.as_millis(), text])?;
    write
        .connection
        .prepare_cached(include_str!("sql/samples_forget.sql"))?
        .execute([SAMPLES_KEPT as i64])?;
    Ok(true)
}

/// Those that are kept, the newest last.
pub(super) fn samples(connection: &Connection) -> rusqlite::Result<Vec<StoredSample>> {
    connection
        .prepare_cached("SELECT at, text FROM flexiq_samples ORDER BY number")?
        .query_map([], |row| Ok(StoredSample { at: Timestamp::from_millis(row.get(0)?), text: row.get(1)? }))?
        .collect()
}
