//! The runnable programs of this folder: `cargo run --example quickstart`.
