//! All gates at once: whatever limits are set while jobs come, run, are put off and are lost, nothing starts that a gate
//! forbids, and a claim leaves nothing behind that all of them admit.
//!
//! A history (`steps`, drawn by `chances`) is played on one store, through two handles in turn (`stand`, `play`), and all
//! that was done and seen is written down as acts of the ledger. The ledger's rule (`check::gates`) then judges it. It
//! knows no store and no model: it counts leases and starts.
//!
//! `FLEXIQ_SOAK=1` plays 10,000 histories on each store instead of a few hundred. One that fails is kept in `regressions/`.

mod chances;
mod histories;
mod play;
mod stand;
mod steps;
mod witness;
