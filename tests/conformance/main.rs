//! What every store must do: each verb and each rule of a job's life, for each store.
//!
//! Tests speak to the `Store` trait and move its clock by hand. A new verb or rule starts here.

mod admission;
mod arrivals;
mod blocked;
mod cancel;
mod caps;
mod claim;
mod declared;
mod doctor;
#[cfg(feature = "redis")]
mod doctor_redis;
mod doctor_sqlite;
mod ended;
mod ends;
mod enqueue;
mod expire;
mod explain;
mod explain_gates;
mod extend;
mod finish;
mod gates;
mod harness;
mod hold;
mod list;
mod named_calls;
mod named_crowd;
mod named_holds;
mod named_leaks;
mod named_limits;
mod named_line;
mod named_rates;
mod order;
mod partition_leaks;
mod partition_limits;
mod partition_turns;
mod pause;
mod permits;
mod prune;
mod rates;
mod read;
mod reap;
#[cfg(feature = "redis")]
mod redis_cuts;
#[cfg(feature = "redis")]
mod redis_link;
#[cfg(feature = "redis")]
mod redis_rates;
mod retry;
mod room;
mod samples;
mod schedules;
mod shut;
mod sqlite_file;
mod stats;
mod story;
mod tell;
mod turn;
mod unique;
mod unique_leaks;
mod unique_release;
mod unique_replace;
mod wait;
mod windows;
