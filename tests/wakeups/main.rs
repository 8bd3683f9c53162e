//! Wake-ups: whatever is done in whatever order, no worker sleeps through a job that it could start.
//!
//! A history (`steps`, drawn by `chances`) is played on one store (`stand`) with workers that claim and wait as a real pump
//! does (`worker`, `play`), and nothing mends what a bell has missed: no worker looks of its own accord, and only one theme
//! has beats. The clock is moved by hand, so that all that time does is the keeper's. Whenever all has arrived and all
//! sleep, no sleeper may have anything to start.
//!
//! A slot that is freed as its next waiter comes is one such order: <https://github.com/rails/solid_queue/pull/689>.
//!
//! `FLEXIQ_SOAK=1` plays 10,000 histories on each store instead of a few hundred. One that fails is kept in `regressions/`.

mod chances;
mod histories;
mod play;
mod schedules;
mod stand;
mod steps;
mod worker;
