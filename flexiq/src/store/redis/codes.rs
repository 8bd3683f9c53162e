//! How jobs, values and rates are written down. What is in a store is for ever: only add.

use std::time::Duration;

use super::wire::{Packed, Unpacked};
use crate::clock::Timestamp;
use crate::job::{Job, JobFailure, JobId, State, Value};
use crate::name::Name;
use crate::policy::Rate;
pub(super) use crate::store::codes::{dead_code, read_state, release_code, scheduled_code, state_code};
use crate::store::story::read_progress;
use crate::store::types::{NewJob, Outset, Payload, Stored};

/// What never changes of a job, behind the beginning that `enqueue.lua` puts before it.
pub(super) fn write_body(job: &NewJob) -> Vec<u8> {
    let Outset { timeout, max_retries, result_ttl } = job.outset;
    let flags = [timeout.is_some(), max_retries.is_some(), result_ttl.is_some()];
    let flags = flags.iter().rev().fold(0, |flags, is_set| flags << 1 | u8::from(*is_set));
    let mut body = Packed::with_room_for(job.payload.bytes.len() + 32).byte(flags);
    if let Some(timeout) = timeout {
        body = body.moment(millis(timeout));
    }
    if let Some(most) = max_retries {
        body = body.word(most);
    }
    if let Some(ttl) = result_ttl {
        body = body.moment(millis(ttl));
    }
    body.byte(job.payload.codec).bytes(&job.payload.bytes).0
}

/// A stored body.
pub(super) struct Body {
    pub(super) enqueued_at: Timestamp,
    pub(super) task: Name,
    pub(super) outset: Outset,
    pub(super) partition: String,
    pub(super) payload: Payload,
}

/// Reads a body, of which the payload may be cut off.
pub(super) fn read_body(bytes: &[u8]) -> Option<Body> {
    let mut body = Unpacked(bytes);
    let (task, partition) = read_lane(&mut body)?;
    let (task, partition) = (Name::new("task", task).ok()?, partition.to_owned());
    let (_rank, due) = (body.byte()?, body.moment()?);
    let enqueued_at = if body.byte()? > 0 { body.moment()? } else { due };
    let flags = body.byte()?;
    let mut outset = Outset::default();
    if flags & 1 > 0 {
        outset.timeout = Some(duration(body.moment()?));
    }
    if flags & 2 > 0 {
        outset.max_retries = Some(body.word()?);
    }
    if flags & 4 > 0 {
        outset.result_ttl = Some(duration(body.moment()?));
    }
    let payload = Payload { codec: body.byte()?, bytes: body.0.to_vec() };
    Some(Body { enqueued_at, task, outset, partition, payload })
}

/// The name of a lane that is a partition of a task. No task has such a byte, and no lane's name begins another's.
pub(super) fn write_lane(task: &str, partition: &str) -> Vec<u8> {
    Packed::default().bytes(task.as_bytes()).byte(LANE).text(partition).0
}

/// The name of what holds for each partition of a task.
pub(super) fn each_partition(task: &Name) -> Vec<u8> {
    Packed::default().bytes(task.as_bytes()).byte(LANE).0
}

const LANE: u8 = 2;

/// Task and partition, with which bodies begin, as `lua/lib/jobs.lua` writes them; without a partition, "".
fn read_lane<'a>(text: &mut Unpacked<'a>) -> Option<(&'a str, &'a str)> {
    let length = text.byte()?;
    let task = text.text((length % 128).into())?;
    if length < 128 {
        return Some((task, ""));
    }
    let _mark = text.byte()?;
    let length = text.byte()?;
    Some((task, text.text(length.into())?))
}

/// A job as people are shown it.
pub(super) fn read_job(id: [u8; 16], queue: &Name, run: &[u8], body: &[u8], progress: &[u8]) -> Option<Job> {
    let body = read_body(body)?;
    let mut run = Unpacked(run);
    let (state, reason, cancel, _lapse) = (run.byte()?, run.byte()?, run.byte()?, run.byte()?);
    let (runs, _worker) = (run.word()?, run.id()?);
    let (ended, _kept, started, _max_losses) = (run.moment()?, run.moment()?, run.moment()?, run.word()?);
    let (failures, deferrals, losses) = (run.word()?, run.word()?, run.word()?);
    let expires = run.moment()?;
    let _lane = read_lane(&mut run)?;
    let (rank, due) = (run.byte()?, run.moment()?);
    let known = |moment: Timestamp| (moment.as_millis() > 0).then(|| moment.into());
    Some(Job {
        id: JobId::from_bytes(id),
        queue: queue.to_string(),
        task: body.task.to_string(),
        partition: some(body.partition),
        state: read_state(state, reason)?,
        priority: priority(rank),
        runs,
        failures,
        deferrals,
        losses,
        last_error: read_error(run.0),
        progress: read_progress(progress, runs),
        cancel_requested: cancel > 0,
        enqueued_at: body.enqueued_at.into(),
        due_at: due.into(),
        expires_at: known(expires),
        started_at: known(started),
        ended_at: known(ended),
    })
}

/// How a job has ended.
pub(super) fn read_stored(id: JobId, run: &[u8], value: &[u8]) -> Option<Stored> {
    let mut run = Unpacked(run);
    let (state, reason) = (run.byte()?, run.byte()?);
    let state = read_state(state, reason)?;
    if state == State::Succeeded {
        return read_value(value).map(Stored::Value);
    }
    // Cancel, lapse, run and worker; moments and the losses that are forgiven.
    run.take(1 + 1 + 4 + 16 + 3 * 6 + 4)?;
    let (failures, deferrals, losses) = (run.word()?, run.word()?, run.word()?);
    let _expires = run.moment()?;
    let (task, _partition) = read_lane(&mut run)?;
    let task = task.to_owned();
    let (_rank, _due) = (run.byte()?, run.moment()?);
    let last_error = read_error(run.0);
    Some(Stored::Failure(JobFailure { id, task, state, failures, deferrals, losses, last_error }))
}

/// An error as the tail of a run: behind a mark. Another mark, or nothing, is none.
pub(super) fn write_error(error: Option<&str>) -> Vec<u8> {
    error.map(|error| [b"=", error.as_bytes()].concat()).unwrap_or_default()
}

fn read_error(tail: &[u8]) -> Option<String> {
    tail.strip_prefix(b"=").map(|error| String::from_utf8_lossy(error).into_owned())
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// Lower first: from 0 for the highest priority to 200.
pub(super) fn rank(priority: i8) -> u8 {
    u8::try_from(100 - i16::from(priority)).unwrap_or(0)
}

fn priority(rank: u8) -> i8 {
    i8::try_from(100 - i16::from(rank)).unwrap_or(0)
}

const JSON: u8 = 1;
const TOO_LARGE: u8 = 2;

/// The kind and the bytes of a value; nothing for that of `()`.
pub(super) fn write_value(value: &Value) -> Vec<u8> {
    match value {
        Value::Unit => Vec::new(),
        Value::Json(bytes) => Packed::default().byte(JSON).bytes(bytes).0,
        Value::TooLarge { size, limit } => {
            let bytes = |size: &usize| (*size as u64).to_be_bytes();
            Packed::default().byte(TOO_LARGE).bytes(&bytes(size)).bytes(&bytes(limit)).0
        }
    }
}

fn read_value(bytes: &[u8]) -> Option<Value> {
    let mut value = Unpacked(bytes);
    match value.byte() {
        None => Some(Value::Unit),
        Some(JSON) => Some(Value::Json(value.0.to_vec())),
        Some(TOO_LARGE) => {
            Some(Value::TooLarge { size: value.number(8)? as usize, limit: value.number(8)? as usize })
        }
        Some(_) => None,
    }
}

/// Rates as starts and milliseconds, such as `100/60000` or `10/1000 spread,100000/86400000`.
pub(super) fn write_rates(rates: &[Rate]) -> String {
    let write = |rate: &Rate| {
        let spread = if rate.spread { SPREAD } else { "" };
        format!("{}/{}{spread}", rate.starts, rate.period.as_millis())
    };
    rates.iter().map(write).collect::<Vec<_>>().join(",")
}

const SPREAD: &str = " spread";

/// The rates of a text; of the empty one, none.
pub(super) fn read_rates(text: &str) -> Option<Vec<Rate>> {
    text.split(',').filter(|rate| !rate.is_empty()).map(read_rate).collect()
}

fn read_rate(text: &str) -> Option<Rate> {
    let (text, spread) = text.strip_suffix(SPREAD).map_or((text, false), |text| (text, true));
    let (starts, ms) = text.split_once('/')?;
    Some(Rate { starts: starts.parse().ok()?, period: Duration::from_millis(ms.parse().ok()?), spread })
}

/// Whole milliseconds, rounded up like every moment.
pub(super) fn millis(duration: Duration) -> i64 {
    (Timestamp::from_millis(0) + duration).as_millis()
}

fn duration(after: Timestamp) -> Duration {
    after.since(Timestamp::from_millis(0))
}
