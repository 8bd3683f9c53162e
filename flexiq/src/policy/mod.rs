//! What decides: numbers and time in, a decision out. No clock, no I/O, no store.

mod cron;
mod gate;
mod line;
mod near;
pub(crate) mod notation;
mod pattern;
mod rate;
mod retry;

pub use cron::{CronSchedule, LATEST, Plan, Seen, plan};
pub use gate::{Gate, Log, Shut, Verdict};
pub use line::{RESERVED, fallback};
pub(crate) use near::nearest;
pub use notation::{Backoff, Rate};
pub use rate::{Admission, Pace, longest, most};
pub use retry::{Budgets, Counters, SHORTEST_DEFERRAL, after_run, hold_of, is_poison};
