//! The ledger of a test: what was done, in the words of those who did it, and what must be true of it.
//!
//! For histories of gates it is what one player did and saw, kept in memory ([`Act`]). For faults it is written:
//! each process appends lines to a file of its own ([`Pen`]), so that a kill loses nothing that was written. A test reads
//! the folder of all files ([`History`]) and holds it to the rules of [`check`], which are pure and have tests of their own.

mod act;
pub mod check;
mod history;
mod line;
mod pen;

pub use act::{Act, Deed, Lane, Place};
pub use history::{Answer, Body, Call, Fate, History};
pub use line::Line;
pub use pen::Pen;
