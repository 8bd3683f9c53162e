//! The workspace's own lints hold in the crates of users as well.
#![deny(warnings, missing_debug_implementations, unreachable_pub, unused_qualifications, unused_results)]
#![deny(elided_lifetimes_in_paths, single_use_lifetimes, unused_lifetimes, non_ascii_idents)]

mod tasks {
    #[flexiq::task(queue = "a", result_ttl = "0s")]
    pub(crate) async fn one(value: String) -> Result<(), String> {
        drop(value);
        Ok(())
    }
}

fn main() {
    let _ = tasks::enqueue_one;
}
