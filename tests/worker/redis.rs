//! The worker suite on Redis.

#[path = "main.rs"]
mod suite;
