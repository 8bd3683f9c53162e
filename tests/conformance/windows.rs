//! Waiting for a rate: it holds no slot, survives the worker, and ends when the window has room.

use flexiq::internals::{Change, Timestamp};

use crate::harness::*;
use crate::shut::*;

/// Rates, each with what it lets start at once and how long the next then waits.
const RATES: [(&str, usize, std::time::Duration); 5] = [
    ("1/m", 1, secs(60)),
    ("100/m", 100, secs(60)),
    ("100/m spread", 1, millis(600)),
    ("2/s, 3/m", 2, secs(1)),
    ("12/m", 12, secs(60)),
];

for_every_store! {
    // https://github.com/hatchet-dev/hatchet/pull/4804: what a rate refused kept a slot, and nobody asked again after a
    // restart.
    async fn what_waits_for_a_rate_holds_no_slot_and_starts_for_a_worker_that_comes_later(bench: Bench) {
        for (place, (rate, at_once, wait)) in Place::ALL.into_iter().flat_map(|place| RATES.map(|rate| (place, rate))) {
            place.set(&bench, Change::Rates(Some(rates(rate)))).await;
            place.set(&bench, Change::MaxConcurrent(Some(101))).await;
            bench.enqueue_many("q", jobs_of(TASK, PARTITION, 150)).await;
            let first = bench.worker().await;
            let held = bench.claim(first, &[TASK], 1_000).await;
            assert_eq!(held.len(), at_once, "{rate} of {place:?}");
            bench.turn(first, finish_all(&held), None).await;
            for _ in 0..3 {
                assert!(bench.claim(first, &[TASK], 1_000).await.is_empty(), "{rate} of {place:?}");
            }
            assert_eq!(running(&bench).await, 0, "nothing that waits holds a slot");
            bench.store.retire(first).await.expect("it retires");

            let (later, mut sleep) = asleep(&bench, &[TASK]).await;
            bench.hands.advance(wait - millis(1));
            assert!(bench.is_pending(&mut sleep).await, "{rate} of {place:?}");
            bench.hands.advance(millis(1));
            assert_eq!(woken(sleep).await, ["q"], "{rate} of {place:?}");
            let next = bench.claim(later, &[TASK], 1_000).await;
            assert!(!next.is_empty() && next.len() <= at_once, "{rate} of {place:?}: {}", next.len());
            bench.turn(later, finish_all(&next), None).await;
            bench.store.retire(later).await.expect("it retires");
            for change in [Change::Rates(None), Change::MaxConcurrent(None)] {
                place.set(&bench, change).await;
            }
            sweep(&bench, vec![]).await;
            bench.pass(CLOSED).await;
            assert!(bench.claim(bench.living, &[TASK], 9).await.is_empty());
        }
    }

    // https://github.com/celery/celery/issues/2988: an idle minute gave no burst, whatever the rate said. Here `spread`
    // says whether there is one.
    // https://github.com/bensheldon/good_job/issues/1353: what was refused once missed the windows that had room.
    async fn fifty_jobs_of_an_idle_minute_start_at_once_or_spread_and_each_in_the_first_window_with_room(bench: Bench) {
        for place in Place::ALL {
            for (rate, expected) in [
                ("100/m", vec![0; 50]),
                ("100/m spread", (0..50).map(|start| start * 600).collect()),
                ("12/m", (0..50).map(|start| start / 12 * 60_000).collect::<Vec<i64>>()),
            ] {
                place.set(&bench, Change::Rates(Some(rates(rate)))).await;
                bench.pass(CLOSED).await;
                bench.enqueue_many("q", jobs_of(TASK, PARTITION, 50)).await;
                let mut starts: Vec<Timestamp> = Vec::new();
                while starts.len() < 50 {
                    let claimed = bench.claim(bench.living, &[TASK], 50).await;
                    starts.extend(claimed.iter().map(|claimed| claimed.claimed_at));
                    bench.turn(bench.living, finish_all(&claimed), None).await;
                    bench.hands.advance(millis(300));
                }
                let since: Vec<i64> = starts.iter().map(|at| at.as_millis() - starts[0].as_millis()).collect();
                assert_eq!(since, expected, "{rate} of {place:?}");
                place.set(&bench, Change::Rates(None)).await;
            }
        }
    }
}
