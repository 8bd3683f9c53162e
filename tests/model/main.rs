//! Random histories: whatever is done, the real stores do what the model does, down to every field that can be seen.
//!
//! A history is a list of steps in a small world (`steps`, drawn by `chances`). It is played on the model and on the real
//! stores of a kind at once (`play`, `fleet`, `permits`, `sides`), and after each step everything that can be seen is compared
//! (`compare`).
//! The clock is moved by hand and ids are counted, so that a history is the same whenever it is played.
//!
//! `FLEXIQ_SOAK=1` plays 20,000 instead of a few hundred. A history that fails is kept in `regressions/`.

mod chances;
mod compare;
mod fleet;
mod histories;
mod limits;
mod named;
mod permits;
mod play;
mod say;
mod schedules;
mod sides;
mod steps;
mod worker;
