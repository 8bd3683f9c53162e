//! What every store must do: each verb and each rule of a job's life, for each store.
//!
//! Tests speak to the `Store` trait and move its clock by hand. A new verb or rule starts here.

mod cancel;
mod claim;
mod ended;
mod enqueue;
mod expire;
mod extend;
mod finish;
mod harness;
mod order;
mod prune;
mod read;
mod reap;
mod retry;
mod sqlite_file;
mod turn;
mod wait;
