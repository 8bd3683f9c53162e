//! prune: what has ended is kept for its time, and nothing grows without bound.

use flexiq::JobId;
use flexiq::internals::Finish;
use flexiq::internals::{DeadReason, Transition, Value};

use crate::harness::*;

const DAY: u64 = 24 * 60 * 60;

async fn is_there(bench: &Bench, id: JobId) -> bool {
    bench.store.job(id).await.expect("the store answers").is_some()
}

/// Lets so much time pass at once, then a beat.
async fn leap(bench: &Bench, seconds: u64) {
    bench.hands.advance(secs(seconds));
    bench.beat(bench.living, &[]).await;
}

for_every_store! {
    async fn a_success_is_kept_as_long_as_its_worker_said(bench: Bench) {
        let mut kept = Vec::new();
        for keep in [10, 60] {
            kept.push(bench.enqueue(job("send")).await);
            let held = bench.claim(bench.living, &["send"], 1).await;
            let transition =
                Transition::Succeed { value: Value::Json(vec![b'1'; 4_096]), keep: secs(keep) };
            bench.finish(bench.living, held[0].lease, transition).await;
        }
        leap(&bench, 9).await;
        assert!(is_there(&bench, kept[0]).await && is_there(&bench, kept[1]).await);
        leap(&bench, 1).await;
        assert!(!is_there(&bench, kept[0]).await && is_there(&bench, kept[1]).await);
        assert_eq!(bench.counts("send").await.succeeded, 1);
        leap(&bench, 50).await;
        assert!(!is_there(&bench, kept[1]).await);
    }

    async fn the_dead_are_kept_ninety_days_and_the_cancelled_one(bench: Bench) {
        let dead = bench.enqueue(job("send")).await;
        let held = bench.claim(bench.living, &["send"], 1).await;
        let kill = Transition::Kill { reason: DeadReason::Never, error: None };
        bench.finish(bench.living, held[0].lease, kill).await;
        let cancelled = bench.enqueue(job("send")).await;
        bench.store.cancel(cancelled).await.expect("answers");
        leap(&bench, DAY - 1).await;
        assert!(is_there(&bench, cancelled).await);
        leap(&bench, 1).await;
        assert!(!is_there(&bench, cancelled).await);
        leap(&bench, 89 * DAY - 1).await;
        assert!(is_there(&bench, dead).await);
        leap(&bench, 1).await;
        assert!(!is_there(&bench, dead).await);
    }

    async fn pruning_is_bounded_and_goes_on(bench: Bench) {
        for _ in 0..3 {
            bench.enqueue_many("q", (0..500).map(|_| job("send")).collect()).await;
            let held = bench.claim(bench.living, &["send"], 500).await;
            let keep = || Transition::Succeed { value: Value::Unit, keep: secs(1) };
            let finishes =
                held.iter().map(|held| Finish::new(held.lease, keep())).collect();
            bench.turn(bench.living, finishes, None).await;
        }
        let mut left = Vec::new();
        for _ in 0..2 {
            leap(&bench, 1).await;
            left.push(bench.counts("send").await.succeeded);
        }
        assert_eq!(left, [500, 0]);
    }

    async fn finishing_prunes_as_fast_as_it_ends_jobs(bench: Bench) {
        let finish = async |jobs: usize| {
            bench.enqueue_many("q", (0..jobs).map(|_| job("send")).collect()).await;
            let held = bench.claim(bench.living, &["send"], 1_000).await;
            let keep = || Transition::Succeed { value: Value::Unit, keep: secs(1) };
            let finishes =
                held.iter().map(|held| Finish::new(held.lease, keep())).collect();
            bench.turn(bench.living, finishes, None).await;
        };
        finish(100).await;
        bench.hands.advance(secs(1));
        finish(30).await;
        assert_eq!(bench.counts("send").await.succeeded, 100 - 60 + 30);
    }

    async fn a_queue_keeps_its_newest_ten_thousand_dead(bench: Bench) {
        let mut first = None;
        for _ in 0..11 {
            let batch = bench.enqueue_many("q", (0..1_000).map(|_| job("send")).collect()).await;
            first.get_or_insert(batch[0].id);
            let held = bench.claim(bench.living, &["send"], 1_000).await;
            let kill = || Transition::Kill { reason: DeadReason::Never, error: None };
            let finishes =
                held.iter().map(|held| Finish::new(held.lease, kill())).collect();
            bench.turn(bench.living, finishes, None).await;
            bench.hands.advance(millis(1));
        }
        bench.beat(bench.living, &[]).await;
        assert_eq!(bench.counts("send").await.dead, 10_000);
        assert!(!is_there(&bench, first.expect("a first batch")).await);
    }
}
