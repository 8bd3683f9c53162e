//! The faults on Redis.

#[path = "main.rs"]
mod suite;
