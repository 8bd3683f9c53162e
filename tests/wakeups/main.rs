//! Wake-ups: whatever is done in whatever order, no worker sleeps through a job that it could start.
//!
//! A history (`steps`, drawn by `chances`) is played on one store (`stand`) with workers that claim and wait as a real pump
//! does (`worker`, `play`), and nothing mends what a bell has missed: no worker looks of its own accord, and no beat rings.
//! The clock is moved by hand, so that all that time does is the keeper's. At the end everything travels and every woken
//! worker claims until all sleep; a sleeper that could claim something then has lost a wake-up.
//!
//! `FLEXIQ_SOAK=1` plays 10,000 histories of each kind instead of a few hundred.

mod chances;
mod histories;
mod play;
mod stand;
mod steps;
mod worker;
