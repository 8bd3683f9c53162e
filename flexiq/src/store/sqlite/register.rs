//! register and retire: the workers that live, and what their tasks declare.

use rusqlite::params;

use super::declared::{declare, forget};
use super::failure::Tried;
use super::guard;
use super::write::Write;
use crate::store::types::{Declared, Hello, WorkerId};

pub(super) fn register(write: &mut Write<'_>, hello: &Hello) -> Tried<()> {
    // A start is a sign of life like a beat; how often beats will come, the first of them says.
    guard::beat(write, hello.lease, hello.lease.mul_f64(0.3))?;
    write.connection.prepare_cached(include_str!("sql/register_worker.sql"))?.execute(params![
        hello.worker.as_bytes(),
        hello.label,
        write.now.as_millis(),
        (write.now + hello.lease).as_millis(),
    ])?;
    for (queue, _) in &hello.queues {
        write.lanes.queue(write.connection, queue)?;
    }
    for Declared { task, queue, json, .. } in &hello.tasks {
        write
            .connection
            .prepare_cached(
                "INSERT OR REPLACE INTO flexiq_tasks (task, queue, declaration) VALUES (?1, ?2, ?3)",
            )?
            .execute(params![&**task, &**queue, json])?;
    }
    Ok(declare(write, hello)?)
}

pub(super) fn retire(write: &mut Write<'_>, worker: WorkerId) -> Tried<()> {
    write
        .connection
        .prepare_cached("DELETE FROM flexiq_turns WHERE worker = ?1")?
        .execute([worker.as_bytes()])?;
    Ok(forget(write, worker.as_bytes())?)
}
