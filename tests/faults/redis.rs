//! The faults on Redis, and what only its server can tell.

mod burst;
mod silence;
#[path = "main.rs"]
mod suite;
