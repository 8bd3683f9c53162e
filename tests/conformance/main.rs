//! What every store must do: each verb and each rule of a job's life, for each store.
//!
//! Tests speak to the `Store` trait and move its clock by hand. A new verb or rule starts here.

mod claim;
mod enqueue;
mod finish;
mod harness;
mod order;
