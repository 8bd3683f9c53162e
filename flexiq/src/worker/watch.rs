//! The worker as one of the watchers of its store: every five minutes one worker of the fleet samples what waits, and says
//! once in the log what is wrong.
//!
//! Beside the beats, on the heartbeat's thread, so that neither waits for the other. A store that is away is not told here.

use crate::queue::{SAMPLE_EVERY, Warning, sample};
use crate::store::Store;

/// So many warnings are told of one look at most.
const MOST_TOLD: usize = 20;

/// Watches for ever.
pub(super) async fn keep(store: &dyn Store) {
    loop {
        store.clock().sleep(SAMPLE_EVERY).await;
        match sample(store).await {
            Ok(Some(warnings)) => tell(&warnings),
            // Somebody else has.
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "the store could not be sampled"),
        }
    }
}

fn tell(warnings: &[Warning]) {
    for warning in warnings.iter().take(MOST_TOLD) {
        tracing::warn!("{warning}");
    }
    if let Some(more) = warnings.len().checked_sub(MOST_TOLD).filter(|more| *more > 0) {
        tracing::warn!("{more} more warnings: see queue.warnings()");
    }
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use std::fmt::Debug;
    use std::sync::{Arc, Mutex, PoisonError};
    use std::time::Duration;

    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Level, Metadata, Subscriber};

    use super::*;
    use crate::clock::{Clock, Timestamp};
    use crate::job::{Due, JobId};
    use crate::name::Name;
    use crate::store::sqlite::{Location, SqliteOptions, SqliteStore};
    use crate::store::{Enqueue, NewJob, Outset, Payload};

    /// Warnings that were logged.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<String>>>);

    impl Lines {
        fn count(&self, words: &str) -> usize {
            let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            lines.iter().filter(|line| line.contains(words)).count()
        }
    }

    impl Subscriber for Lines {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            *metadata.level() == Level::WARN
        }

        fn event(&self, event: &Event<'_>) {
            event.record(&mut self.clone());
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    impl Visit for Lines {
        fn record_debug(&mut self, _: &Field, value: &dyn Debug) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{value:?}"));
        }
    }

    fn stranded() -> Enqueue {
        let name = |text| Name::new("test", text).expect("tests use valid names");
        let job = NewJob {
            id: JobId::new(),
            is_given: false,
            task: name("send"),
            partition: String::new(),
            max_pending_per_partition: None,
            payload: Payload { codec: 0, bytes: b"{}".to_vec() },
            priority: 0,
            due: Due::NOW,
            expires: None,
            outset: Outset::default(),
            unique: None,
        };
        Enqueue { queue: name("q"), jobs: vec![job], max_pending: None, producer: None }
    }

    #[tokio::test]
    async fn who_has_sampled_says_each_warning_once_every_five_minutes() {
        let lines = Lines::default();
        let _heard = tracing::subscriber::set_default(lines.clone());
        let (clock, hands) = Clock::manual(Timestamp::from_millis(1_700_000_000_000));
        let mut options = SqliteOptions::new(Location::Memory);
        options.clock = clock;
        let store = SqliteStore::open(options).await.expect("the store opens");
        store.enqueue(stranded()).await.expect("stored");
        // Two that watch the same store.
        let watch = async { tokio::join!(keep(&*store), keep(&*store)) };
        let look = async {
            for times in 0..3 {
                for _ in 0..50 {
                    tokio::task::yield_now().await;
                    store.queues().await.expect("the store answers");
                }
                assert_eq!(lines.count("send in queue q waits for a worker that does not exist"), times);
                hands.advance(SAMPLE_EVERY);
            }
        };
        tokio::select! {
            _ = watch => unreachable!("they watch for ever"),
            () = look => {}
        }
    }

    #[test]
    fn a_flood_of_warnings_is_cut() {
        let lines = Lines::default();
        let warning = |n: u32| Warning::RunTooLong {
            queue: "q".into(),
            task: format!("task{n}"),
            lasts: Duration::from_secs(60),
            usual: Duration::from_secs(1),
        };
        let warnings: Vec<_> = (0..25).map(warning).collect();
        tracing::subscriber::with_default(lines.clone(), || tell(&warnings));
        assert_eq!((lines.count("A run of task"), lines.count("5 more warnings")), (20, 1));
    }
}
