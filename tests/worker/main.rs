//! The worker seen from outside: real tasks, real threads, a real store in memory, and a clock that the test moves.

mod cancel;
mod endings;
mod enqueueing;
mod idle;
mod knobs;
mod leases;
mod limits;
mod order;
mod shutdown;
mod start;
mod wake;
