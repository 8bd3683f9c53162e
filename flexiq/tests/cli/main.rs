//! The command line, run as a program: what it prints for people and for programs, and what it says of mistakes.
//!
//! Each snapshot is a transcript. `INSTA_UPDATE=always cargo test -p flexiq --all-features --test cli` writes them anew.

mod book;
mod change;
mod look;
mod manners;
#[path = "../../../tests/redis_server.rs"]
#[allow(dead_code, reason = "other suites use more of it")]
mod redis_server;
mod stage;
