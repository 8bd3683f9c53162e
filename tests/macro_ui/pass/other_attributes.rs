//! Attributes of others above and below, and functions that come and go with a `#[cfg]`.
#![deny(warnings)]

#[cfg(any())]
#[flexiq::task]
fn gone_above(missing: NoSuchType) {}

#[flexiq::task]
#[cfg(any())]
fn gone_below(missing: NoSuchType) {}

#[flexiq::task]
#[cfg_attr(all(), cfg(any()), doc = "gone")]
fn gone_indirectly(missing: NoSuchType) {}

#[flexiq::task]
#[cfg(all())]
#[inline(never)]
#[allow(clippy::needless_pass_by_value)]
#[deprecated = "use another"]
fn stays(#[allow(unused)] number: String) {}

#[must_use]
#[flexiq::task]
async fn above(number: u8) -> Result<u8, String> {
    Ok(number)
}

fn main() {
    let _ = (enqueue_stays, enqueue_above);
}
