//! Real processes and real signals on one real store. Time is real here too, because the processes have their own.
//!
//! The suite runs on a file of SQLite, and once more on Redis: `redis.rs`.

pub(crate) mod dose;
mod fleet;
mod fleet_cap;
mod full_queue;
mod kill_loop;
mod named_limit;
pub(crate) mod place;
pub(crate) mod process;
mod producers;
mod schedule;
mod signals;
mod store_log;
