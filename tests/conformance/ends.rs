//! A slot is freed once, however its run ends, and wherever the cap stands; and it is offered at once.

use std::sync::Arc;

use flexiq::State;
use flexiq::internals::{Beat, Change, Claimed, Finish, Finished, Lapse, NewJob, Transition, Turn, WorkerId};

use crate::harness::*;
use crate::shut::*;

const CAP: Change = Change::MaxConcurrent(Some(2));

/// How a job ends that was claimed and never begun.
#[derive(Clone, Copy, Debug)]
enum Unbegun {
    Cancelled,
    CancelledAndLost,
    ExpiredAndReleased,
    ExpiredAndPutBack,
    ExpiredAndLapsed,
    Lapsed,
    Lost,
    Poison,
    ItsWorkerRetired,
}

const EVERY_UNBEGUN: [Unbegun; 9] = [
    Unbegun::Cancelled,
    Unbegun::CancelledAndLost,
    Unbegun::ExpiredAndReleased,
    Unbegun::ExpiredAndPutBack,
    Unbegun::ExpiredAndLapsed,
    Unbegun::Lapsed,
    Unbegun::Lost,
    Unbegun::Poison,
    Unbegun::ItsWorkerRetired,
];

impl Unbegun {
    /// Brings this end about, and answers whose lease it was.
    async fn bring_about(self, bench: &Bench) -> (WorkerId, Claimed) {
        let worker = bench.worker().await;
        let mut wanted = claim(&[TASK], 1);
        wanted.tasks[0].max_losses = if matches!(self, Self::Poison) { 0 } else { 3 };
        let held = bench.turn(worker, vec![], Some(wanted)).await.claimed.remove(0);
        if matches!(self, Self::Cancelled | Self::CancelledAndLost) {
            bench.store.cancel(held.lease.job).await.expect("answers");
        }
        let beat = |lapse| Beat {
            worker,
            lease: LEASE,
            every: BEAT,
            leases: vec![(held.lease, lapse)],
            permits: Vec::new(),
            report: None,
        };
        match self {
            Self::Cancelled => drop(bench.finish(worker, held.lease, Transition::Cancel).await),
            Self::ExpiredAndReleased | Self::ExpiredAndPutBack => {
                bench.hands.advance(secs(1));
                let back = match self {
                    Self::ExpiredAndPutBack => Transition::PutBack,
                    _ => Transition::Release,
                };
                bench.finish(worker, held.lease, back).await;
            }
            Self::Lapsed | Self::ExpiredAndLapsed => {
                bench.store.extend(beat(Lapse::Release)).await.expect("the beat is answered");
                bench.pass(LEASE).await;
            }
            Self::ItsWorkerRetired => {
                bench.store.retire(worker).await.expect("it retires");
                bench.pass(LEASE).await;
            }
            Self::Lost | Self::CancelledAndLost | Self::Poison => bench.pass(LEASE).await,
        }
        (worker, held)
    }
}

for_every_store! {
    // https://github.com/kestra-io/kestra/pull/17759: a duplicated end freed its slot twice.
    async fn every_end_of_a_run_frees_one_slot_of_every_cap_however_often_it_is_said(bench: Bench) {
        for place in Place::ALL {
            place.set(&bench, CAP).await;
            bench.enqueue_many("q", jobs_of(TASK, PARTITION, 40)).await;
            let mut held = bench.claim(bench.living, &[TASK], 9).await;
            for (end, is_cancelled) in every_end().into_iter().flat_map(|end| [(end.clone(), false), (end, true)]) {
                assert_eq!(held.len(), 2, "{place:?}: before {end:?}");
                let lease = held.remove(0).lease;
                if is_cancelled {
                    bench.store.cancel(lease.job).await.expect("answers");
                }
                let turn = Arc::new(Turn {
                    worker: bench.living,
                    queue: name("q"),
                    number: next_number(),
                    finishes: vec![Finish::new(lease, end.clone())],
                    claim: None,
                });
                for _ in 0..2 {
                    let answer = bench.store.turn(turn.clone()).await.expect("the turn is answered");
                    assert_eq!(answer.finished, [Finished::Done], "{place:?}: {end:?}");
                }
                assert_eq!(bench.finish(bench.living, lease, end).await, Finished::LeaseLost);
                assert_eq!(running(&bench).await, 1);
                held.extend(bench.claim(bench.living, &[TASK], 9).await);
            }
            sweep(&bench, held).await;
            place.set(&bench, Change::MaxConcurrent(None)).await;
        }
    }

    // https://github.com/kestra-io/kestra/pull/17759: what ended before its first step never gave its slot back.
    async fn a_job_that_is_claimed_and_ends_unbegun_frees_its_slot_once_whatever_is_said_later(bench: Bench) {
        for (place, unbegun) in Place::ALL.into_iter().flat_map(|place| EVERY_UNBEGUN.map(|end| (place, end))) {
            place.set(&bench, Change::MaxConcurrent(Some(1))).await;
            let expires = matches!(
                unbegun,
                Unbegun::ExpiredAndReleased | Unbegun::ExpiredAndPutBack | Unbegun::ExpiredAndLapsed
            );
            let first = NewJob { expires: expires.then_some(secs(1)), ..job_of(TASK, PARTITION) };
            let id = bench.enqueue(first).await;
            bench.enqueue_many("q", jobs_of(TASK, PARTITION, 5)).await;
            let (worker, ended) = unbegun.bring_about(&bench).await;
            assert_eq!((ended.lease.job, running(&bench).await), (id, 0), "{place:?}: {unbegun:?}");
            let held = bench.claim(bench.living, &[TASK], 9).await;
            assert_eq!(held.len(), 1, "{place:?}: {unbegun:?}");
            assert_eq!(bench.state(id).await == State::Expired, expires, "{unbegun:?}");
            for late in every_end() {
                assert_eq!(bench.finish(worker, ended.lease, late).await, Finished::LeaseLost);
            }
            assert!(bench.claim(bench.living, &[TASK], 9).await.is_empty(), "{place:?}: {unbegun:?}");
            assert_eq!(running(&bench).await, 1);
            sweep(&bench, held).await;
            place.set(&bench, Change::MaxConcurrent(None)).await;
        }
    }

    async fn what_ends_while_it_waits_frees_no_slot_of_any_cap(bench: Bench) {
        for place in Place::ALL {
            place.set(&bench, Change::MaxConcurrent(Some(1))).await;
            bench.enqueue_many("q", jobs_of(TASK, PARTITION, 4)).await;
            let held = bench.claim(bench.living, &[TASK], 9).await;
            let expiring = NewJob { expires: Some(secs(1)), ..job_of(TASK, PARTITION) };
            let waiting = bench.enqueue_many("q", vec![job_of(TASK, PARTITION), expiring]).await;
            bench.store.cancel(waiting[0].id).await.expect("answers");
            bench.store.delete(waiting[0].id).await.expect("answers");
            bench.hands.advance(secs(1));
            assert!(bench.claim(bench.living, &[TASK], 9).await.is_empty(), "{place:?}");
            assert_eq!(bench.state(waiting[1].id).await, State::Expired);
            bench.store.retry(waiting[1].id).await.expect("answers");
            assert!(bench.claim(bench.living, &[TASK], 9).await.is_empty(), "{place:?}");
            bench.store.cancel_partition(name(TASK), PARTITION.into()).await.expect("answers");
            bench.enqueue_many("q", jobs_of(TASK, PARTITION, 4)).await;
            assert!(bench.claim(bench.living, &[TASK], 9).await.is_empty(), "{place:?}");
            assert_eq!(running(&bench).await, 1);
            sweep(&bench, held).await;
            place.set(&bench, Change::MaxConcurrent(None)).await;
        }
    }

    // https://github.com/rails/solid_queue/pull/761: what was declared lost and lived on freed its slot a second time.
    // https://github.com/triggerdotdev/trigger.dev/pull/2907: what was requeued after a crash kept its slot for ever.
    async fn however_many_holders_are_lost_and_live_on_no_more_run_than_the_cap_and_none_keeps_a_slot(bench: Bench) {
        for place in Place::ALL {
            place.set(&bench, CAP).await;
            bench.enqueue_many("q", jobs_of(TASK, PARTITION, 12)).await;
            let mut lost: Vec<(WorkerId, Claimed)> = Vec::new();
            for crash in 0..6 {
                let worker = bench.worker().await;
                let held = bench.claim(worker, &[TASK], 9).await;
                assert_eq!(held.len(), 2, "{place:?}: after {crash} crashes");
                for (late, claimed) in &lost {
                    for end in every_end() {
                        assert_eq!(bench.finish(*late, claimed.lease, end).await, Finished::LeaseLost);
                    }
                    assert_eq!(bench.beat(*late, &[claimed.lease]).await.lost, [claimed.lease]);
                }
                assert!(bench.claim(bench.living, &[TASK], 9).await.is_empty(), "{place:?}");
                assert_eq!(running(&bench).await, 2);
                lost.extend(held.into_iter().map(|claimed| (worker, claimed)));
                bench.pass(LEASE).await;
                assert_eq!(running(&bench).await, 0, "reclaimed and freed in one step");
            }
            sweep(&bench, vec![]).await;
            place.set(&bench, Change::MaxConcurrent(None)).await;
        }
    }

    // https://github.com/conductor-oss/conductor/pull/1105: the rest waited a fixed time beside a slot that was free.
    // https://github.com/rails/solid_queue/pull/689: who came as the slot was freed was never started.
    async fn a_slot_that_any_end_frees_is_offered_at_once_to_who_waits(bench: Bench) {
        for (place, end) in Place::ALL.into_iter().flat_map(|place| every_end().into_iter().map(move |end| (place, end))) {
            place.set(&bench, Change::MaxConcurrent(Some(1))).await;
            bench.enqueue_many("q", jobs_of(TASK, PARTITION, 2)).await;
            let held = bench.claim(bench.living, &[TASK], 9).await;
            let (sleeper, wait) = asleep(&bench, &[TASK]).await;
            bench.finish(bench.living, held[0].lease, end.clone()).await;
            assert_eq!(woken(wait).await, ["q"], "{place:?}: {end:?}, and no time has passed");
            let next = bench.claim(sleeper, &[TASK], 9).await;
            assert_eq!(next.len(), 1, "{place:?}: {end:?}");
            bench.turn(sleeper, finish_all(&next), None).await;
            bench.store.retire(sleeper).await.expect("it retires");
            sweep(&bench, vec![]).await;
            place.set(&bench, Change::MaxConcurrent(None)).await;
        }
    }

    // https://github.com/PrefectHQ/prefect/pull/20470: thousands waited for as long as an estimate said.
    async fn thousands_that_wait_start_in_their_order_one_for_each_that_ends_and_no_time_passes(bench: Bench) {
        for place in Place::ALL {
            place.set(&bench, Change::MaxConcurrent(Some(30))).await;
            let batch: Vec<_> = bench.enqueue_many("q", jobs_of(TASK, PARTITION, 2_000)).await;
            let mut order: Vec<_> = batch.iter().map(|stored| stored.id).collect();
            // All came at one moment: ties are broken by id.
            order.sort_unstable();
            let mut held = bench.claim(bench.living, &[TASK], 100).await;
            let mut started = ids(&held);
            for _ in 0..50 {
                let ended = Finish::new(held.remove(0).lease, succeed());
                let next = bench.turn(bench.living, vec![ended], Some(claim(&[TASK], 100))).await.claimed;
                assert_eq!(next.len(), 1, "{place:?}");
                started.extend(ids(&next));
                held.extend(next);
            }
            assert_eq!(started, order[..80], "{place:?}");
            sweep(&bench, held).await;
            place.set(&bench, Change::MaxConcurrent(None)).await;
        }
    }
}
