//! The ledger of a fault test: what producers and workers did, in their own words, and what must be true of it.
//!
//! Each process appends lines to a file of its own ([`Pen`]), so that a kill loses nothing that was written. A test reads
//! the folder of all files ([`History`]) and holds it to the rules of [`check`], which are pure and have tests of their own.

pub mod check;
mod history;
mod line;
mod pen;

pub use history::{Answer, Body, Call, Fate, History};
pub use line::Line;
pub use pen::Pen;
