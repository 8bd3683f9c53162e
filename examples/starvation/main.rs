//! Slow reports and quick emails share one worker: what becomes of the emails, under seven ways to hold the reports back.
//!
//! ```sh
//! cargo run --release --example starvation                          # a table, on a store in memory
//! cargo run --release --example starvation -- sqlite://jobs.db      # on another store: this, or that of FLEXIQ_URL
//! cargo run --release -p flexiq-examples --features redis --example starvation -- redis://127.0.0.1
//! cargo run --release --example starvation -- --json                # for programs
//! ```
//!
//! An idle worker with ten slots gets 30 reports of 500 ms, and then 20 emails of 10 ms. A limit that makes a job wait
//! inside its slot is worse than none; one that leaves it in its queue gives the emails the other slots.

mod experiment;
mod table;

use experiment::{Load, Variant, run};

#[tokio::main]
async fn main() -> flexiq::Result<()> {
    let (flags, urls): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|word| word.starts_with("--"));
    let (as_json, url) = match (flags.as_slice(), urls.as_slice()) {
        ([], [..]) if urls.len() < 2 => (false, urls.first()),
        ([flag], [..]) if flag == "--json" && urls.len() < 2 => (true, urls.first()),
        _ => {
            eprintln!("usage: starvation [--json] [URL]");
            std::process::exit(2);
        }
    };
    let named = url.cloned().or_else(|| std::env::var("FLEXIQ_URL").ok());
    let url = named.as_deref().unwrap_or("sqlite::memory:");
    let mut figures = Vec::new();
    for variant in Variant::ALL {
        if !as_json {
            eprintln!("{} …", variant.name());
        }
        figures.push(run(variant, url, Load::FULL).await?);
    }
    if as_json {
        println!("{}", serde_json::json!(figures));
    } else {
        print!("{}", table::draw(&figures));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::experiment::{Figures, Load, Variant, run};

    mod a_limit_that_frees_the_slot_saves_the_emails_and_one_that_holds_it_makes_them_worse {
        #[tokio::test(flavor = "multi_thread")]
        async fn sqlite() {
            super::compare(|| "sqlite::memory:".into()).await;
        }

        #[cfg(feature = "redis")]
        #[tokio::test(flavor = "multi_thread")]
        async fn redis() {
            super::compare(flexiq_tests::redis_server::url).await;
        }
    }

    /// Runs all, each on a store of its own, at the same time: what is compared has then met the same machine.
    async fn compare(url: fn() -> String) {
        let runs =
            Variant::ALL.map(|variant| tokio::spawn(async move { run(variant, &url(), Load::SMALL).await }));
        let mut figures = Vec::new();
        for run in runs {
            figures.push(run.await.expect("it does not panic").expect("the store answers"));
        }
        let [no_limit, semaphore, defer, named, apart, in_flight, concurrent] = figures.as_slice() else {
            panic!("one for each variant: {figures:?}");
        };

        assert_eq!(no_limit.peak_reports, 10, "without a limit reports take every slot");
        for limited in [semaphore, defer, named, apart, in_flight, concurrent] {
            assert_eq!(limited.peak_reports, 3, "{limited:?}");
        }
        for kept in [no_limit, semaphore, apart, in_flight, concurrent] {
            assert_eq!(kept.deferrals, 0, "{kept:?}");
        }
        assert!(defer.deferrals >= 27, "all but three reports give their slot back at least once: {defer:?}");
        assert!((1..=27).contains(&named.deferrals), "each starts in vain at most once: {named:?}");
        assert!(figures.iter().all(|figures| figures.failures == 0), "a deferral is not a failure");

        let median = |figures: &Figures| figures.email_median_ms;
        assert!(
            median(semaphore) > median(no_limit),
            "waiting in the slot is worse than no limit: {figures:?}"
        );
        for saved in [defer, named, apart, in_flight, concurrent] {
            assert!(median(saved) < median(no_limit), "a free slot saves the emails: {figures:?}");
        }
    }
}
