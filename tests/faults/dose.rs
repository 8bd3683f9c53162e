//! How much of a fault a test takes: a little by default, twenty times as much with `FLEXIQ_SOAK=1`.

use std::time::{SystemTime, UNIX_EPOCH};

/// So many times the usual dose.
pub(crate) fn dose() -> usize {
    if std::env::var("FLEXIQ_SOAK").is_ok_and(|soak| soak == "1") { 20 } else { 1 }
}

/// Chance, from the seed in `FLEXIQ_SEED` or a new one; the seed is printed, so that a failure can be looked at again.
pub(crate) fn chance(test: &str) -> fastrand::Rng {
    let seed = std::env::var("FLEXIQ_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
        u64::from(now.subsec_nanos())
    });
    println!("{test}: FLEXIQ_SEED={seed}");
    fastrand::Rng::with_seed(seed)
}
