//! A backlog that may not start costs the others nothing, and is not touched: whatever gate it waits for.

use flexiq::internals::{Change, Claim, Due, NewJob, Room, ScheduledReason, Transition};

use crate::harness::*;
use crate::shut::*;

/// So many wait before the gate.
const BACKLOG: usize = 500;

/// Jobs before the gate, which are older than all others and more urgent.
fn backlog() -> Vec<NewJob> {
    (0..BACKLOG).map(|_| NewJob { priority: 50, ..job_of(TASK, PARTITION) }).collect()
}

for_every_store! {
    // https://github.com/ixti/sidekiq-throttled/issues/131: one job of a free task started behind a thousand of a full one.
    // https://github.com/apache/airflow/issues/18131: a window of candidates that held the full task alone started nothing else.
    async fn whatever_a_task_waits_for_a_job_of_another_starts_at_once_and_the_rest_fill_the_slots(bench: Bench) {
        for (gate, place) in gates(&[Place::Task, Place::Partition]) {
            let shut = Shut::shut(&bench, gate, place).await;
            bench.enqueue_many("q", backlog()).await;
            bench.hands.advance(millis(1));
            let (worker, wait) = asleep(&bench, &[TASK, "free"]).await;
            let first = bench.enqueue(job("free")).await;
            assert_eq!(woken(wait).await, ["q"], "{gate:?} of {place:?}");
            let claimed = bench.claim(worker, &[TASK, "free"], 12).await;
            assert_eq!(ids(&claimed), [first], "{gate:?} of {place:?}");
            bench.enqueue_many("q", jobs("free", 200)).await;
            let rest = bench.claim(worker, &[TASK, "free"], 11).await;
            assert_eq!(rest.len(), 11, "{gate:?} of {place:?}");
            assert!(rest.iter().all(|claimed| &*claimed.task == "free"));
            bench.turn(worker, finish_all(&[claimed, rest].concat()), None).await;
            let rest = bench.claim(worker, &["free"], 1_000).await;
            bench.turn(worker, finish_all(&rest), None).await;
            bench.store.retire(worker).await.expect("it retires");
            shut.clear(&bench, vec![]).await;
        }
    }

    // https://github.com/ixti/sidekiq-throttled/issues/94: a job of a free key started behind a hundred of a full one.
    async fn whatever_a_partition_waits_for_a_job_of_another_starts_at_once(bench: Bench) {
        for (gate, place) in gates(&[Place::Partition]) {
            let shut = Shut::shut(&bench, gate, place).await;
            bench.enqueue_many("q", backlog()).await;
            bench.hands.advance(millis(1));
            let (worker, wait) = asleep(&bench, &[TASK]).await;
            let first = bench.enqueue(job_of(TASK, "free")).await;
            assert_eq!(woken(wait).await, ["q"], "{gate:?}");
            let claimed = bench.claim(worker, &[TASK], 25).await;
            assert_eq!(ids(&claimed), [first], "{gate:?}");
            bench.turn(worker, finish_all(&claimed), None).await;
            bench.store.retire(worker).await.expect("it retires");
            shut.clear(&bench, vec![]).await;
        }
    }

    // https://github.com/ixti/sidekiq-throttled/issues/131, of slots of several kinds and tasks by the hundred.
    async fn a_hundred_tasks_at_their_gates_keep_a_free_one_waiting_in_no_slot(bench: Bench) {
        let shut: Vec<String> = (0..100).map(|number| format!("shut-{number}")).collect();
        for task in &shut {
            bench.set_task(task, Change::MaxConcurrent(Some(1))).await;
            bench.enqueue_many("q", jobs(task, 5)).await;
        }
        let room = |task: &str, slot| Room { task: name(task), slot, at_most: u32::MAX, max_losses: 3 };
        let wanted = |slots| Claim {
            slots,
            tasks: shut.iter().map(|task| room(task, 0)).chain([room("free", 0), room("plain", 1)]).collect(),
            lease: LEASE,
        };
        let held = bench.turn(bench.living, vec![], Some(wanted(vec![1_000, 0]))).await.claimed;
        assert_eq!(held.len(), 100, "one of each");
        bench.hands.advance(millis(1));
        bench.enqueue_many("q", [jobs("free", 20), jobs("plain", 20)].concat()).await;
        let claimed = bench.turn(bench.living, vec![], Some(wanted(vec![12, 3]))).await.claimed;
        let of = |task: &str| claimed.iter().filter(|claimed| &*claimed.task == task).count();
        assert_eq!((of("free"), of("plain"), claimed.len()), (12, 3, 15));
    }

    // https://github.com/Bogdanp/dramatiq/issues/257: a job was dropped unrun, its limit being busy as often as it had tries.
    // https://github.com/bensheldon/good_job/issues/838: every job in excess was fetched, refused and rewritten.
    // https://github.com/bensheldon/good_job/issues/1353: a refused job waited by its back-off for failures.
    async fn however_often_a_job_is_refused_it_is_untouched_and_runs_when_its_gate_opens(bench: Bench) {
        for (gate, place) in gates(&Place::ALL) {
            let mut shut = Shut::shut(&bench, gate, place).await;
            let id = bench.enqueue(job_of(TASK, PARTITION)).await;
            let before = bench.job(id).await;
            for refused in 0..20 {
                assert!(bench.claim(bench.living, &[TASK], 9).await.is_empty(), "{gate:?} of {place:?}");
                assert_eq!(bench.job(id).await, before, "{gate:?} of {place:?}, refused {refused} times");
            }
            let (worker, wait) = asleep(&bench, &[TASK]).await;
            shut.open(&bench).await;
            assert_eq!(woken(wait).await, ["q"], "{gate:?} of {place:?}");
            let claimed = bench.claim(worker, &[TASK], 9).await;
            assert_eq!(ids(&claimed), [id], "{gate:?} of {place:?}");
            let counters = (claimed[0].lease.run, claimed[0].failures, claimed[0].deferrals, claimed[0].losses);
            assert_eq!(counters, (1, 0, 0, 0));
            bench.turn(worker, finish_all(&claimed), None).await;
            bench.store.retire(worker).await.expect("it retires");
            shut.clear(&bench, vec![]).await;
        }
    }

    // https://github.com/bensheldon/good_job/issues/1353 and https://github.com/taskforcesh/bullmq/issues/1302: what had
    // failed before waited by its back-off when a limit refused it.
    async fn a_retry_that_a_gate_refuses_starts_when_the_gate_opens_however_often_its_job_has_failed(bench: Bench) {
        for (gate, place) in gates(&Place::ALL) {
            for failures in [1, 4, 9] {
                let id = bench.enqueue(job_of(TASK, PARTITION)).await;
                for failure in 1..=failures {
                    let held = bench.claim(bench.living, &[TASK], 9).await;
                    let due = Due::In(secs(if failure < failures { 0 } else { 5 }));
                    let retry = Transition::Schedule { reason: ScheduledReason::Retry, due, error: None };
                    bench.finish(bench.living, held[0].lease, retry).await;
                }
                let mut shut = Shut::shut(&bench, gate, place).await;
                bench.hands.advance(secs(5));
                for _ in 0..5 {
                    assert!(bench.claim(bench.living, &[TASK], 9).await.is_empty(), "{gate:?} of {place:?}");
                }
                shut.open(&bench).await;
                let claimed = bench.claim(bench.living, &[TASK], 9).await;
                assert_eq!((ids(&claimed), claimed[0].failures), (vec![id], failures), "{gate:?} of {place:?}");
                shut.clear(&bench, claimed).await;
            }
        }
    }
}
