//! Whatever the order of ids, of arrivals and of claims: as many start as the limit has room for, and no more.

use flexiq::JobId;
use flexiq::internals::{Change, Claimed, Due, NewJob, Transition};

use crate::harness::*;
use crate::shut::*;

/// Orders that each test goes through. A number is the seed of its chances.
const ORDERS: u64 = 6;

/// A few jobs whose ids, ages and priorities are in no order.
fn shuffled(chance: &mut fastrand::Rng) -> Vec<NewJob> {
    let job = |chance: &mut fastrand::Rng| NewJob {
        id: JobId::from_bytes(chance.u128(..).to_be_bytes()),
        priority: chance.i8(-3..=3),
        due: if chance.u8(..4) == 0 { Due::In(millis(chance.u64(1..9))) } else { Due::NOW },
        ..job_of(TASK, PARTITION)
    };
    (0..chance.usize(1..5)).map(|_| job(chance)).collect()
}

for_every_store! {
    // https://github.com/hatchet-dev/hatchet/issues/4778: jobs that were seen in another order than their ids' let twice
    // the cap start.
    async fn whatever_the_order_of_ids_and_arrivals_the_free_slots_are_filled_and_no_more(bench: Bench) {
        let workers = [bench.worker().await, bench.worker().await];
        for (place, order) in Place::ALL.into_iter().flat_map(|place| (0..ORDERS).map(move |order| (place, order))) {
            let mut chance = fastrand::Rng::with_seed(order);
            let cap = chance.u32(1..=4);
            place.set(&bench, Change::MaxConcurrent(Some(cap))).await;
            let mut held: Vec<(usize, Claimed)> = Vec::new();
            for step in 0..30 {
                let room = cap as usize - held.len();
                // The jobs come while both workers claim.
                let (_, first, second) = tokio::join!(
                    bench.enqueue_many("q", shuffled(&mut chance)),
                    bench.claim(workers[0], &[TASK], 1 + step % 3),
                    bench.claim(workers[1], &[TASK], 9),
                );
                assert!(first.len() + second.len() <= room, "{place:?}, order {order}, step {step}");
                held.extend(first.into_iter().map(|claimed| (0, claimed)));
                held.extend(second.into_iter().map(|claimed| (1, claimed)));
                bench.hands.advance(millis(chance.u64(..4)));
                let rest = bench.claim(workers[0], &[TASK], 9).await;
                held.extend(rest.into_iter().map(|claimed| (0, claimed)));
                let counts = bench.counts(TASK).await;
                assert_eq!(counts.running, held.len() as u64);
                assert!(counts.running == u64::from(cap) || counts.ready == 0, "a slot is left free: {counts:?}");
                for _ in 0..chance.usize(..=held.len()) {
                    let (worker, ended) = held.swap_remove(chance.usize(..held.len()));
                    let end = if chance.bool() { Transition::Release } else { succeed() };
                    bench.finish(workers[worker], ended.lease, end).await;
                }
            }
            for (worker, ended) in held {
                bench.finish(workers[worker], ended.lease, succeed()).await;
            }
            sweep(&bench, vec![]).await;
            place.set(&bench, Change::MaxConcurrent(None)).await;
        }
    }

    // https://github.com/rafidahmed870/queue-jobs-worker/issues/15: two workers saw one empty window, and both started.
    async fn of_workers_that_find_one_window_empty_together_no_more_start_than_the_rate(bench: Bench) {
        let workers = [bench.worker().await, bench.worker().await, bench.worker().await, bench.worker().await];
        for (place, (rate, starts)) in Place::ALL.into_iter().flat_map(|place| {
            [("1/m", 1), ("3/m", 3), ("60/m spread", 1), ("2/s, 5/m", 2)].map(move |rate| (place, rate))
        }) {
            place.set(&bench, Change::Rates(Some(rates(rate)))).await;
            bench.enqueue_many("q", jobs_of(TASK, PARTITION, 20)).await;
            for window in 0..2 {
                let (one, two, three, four) = tokio::join!(
                    bench.claim(workers[0], &[TASK], 1),
                    bench.claim(workers[1], &[TASK], 1),
                    bench.claim(workers[2], &[TASK], 1),
                    bench.claim(workers[3], &[TASK], 1),
                );
                let started = [&one, &two, &three, &four].map(Vec::len);
                assert_eq!(started.iter().sum::<usize>(), starts, "{rate} of {place:?}, window {window}: {started:?}");
                for (worker, claimed) in workers.into_iter().zip([one, two, three, four]) {
                    bench.turn(worker, finish_all(&claimed), None).await;
                }
                bench.pass(CLOSED).await;
            }
            sweep(&bench, vec![]).await;
            place.set(&bench, Change::Rates(None)).await;
        }
    }
}
