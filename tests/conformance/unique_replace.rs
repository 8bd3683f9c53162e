//! What a call does to the job that has its key: it may bring other arguments, and postpone it.

use flexiq::internals::{
    Due, Enqueue, NewJob, OnDuplicate, Outset, Payload, Release, ScheduledReason, Transition, Unique,
};
use flexiq::{Error, State};

use crate::harness::*;
use crate::unique::{AT_END, AT_START, only};

/// A call for the key "a" with these arguments.
fn call(on_duplicate: OnDuplicate, release: Release, arguments: &str) -> NewJob {
    let job = only("a", release);
    let unique = job.unique.map(|unique| Unique { on_duplicate, ..unique });
    NewJob { unique, payload: Payload { codec: 0, bytes: arguments.into() }, ..job }
}

fn replacing(arguments: &str) -> NewJob {
    call(OnDuplicate::Replace, AT_END, arguments)
}

/// A call whose job is due so long after the last of its kind.
fn postponing(after: u64, arguments: &str) -> NewJob {
    NewJob { due: Due::In(secs(after)), ..call(OnDuplicate::Postpone, AT_START, arguments) }
}

async fn is_replaced(bench: &Bench, job: NewJob) -> bool {
    let answer = bench.enqueue_many("q", vec![job]).await[0];
    assert!(answer.is_duplicate, "{answer:?}");
    answer.is_replaced
}

async fn claimed_arguments(bench: &Bench) -> Vec<String> {
    let claimed = bench.claim(bench.living, &["send"], 9).await;
    claimed.into_iter().map(|job| String::from_utf8(job.payload.bytes).expect("text")).collect()
}

for_every_store! {
    async fn arguments_of_a_job_that_waits_are_replaced_and_its_place_is_kept(bench: Bench) {
        let first = bench.enqueue(NewJob { priority: 1, ..call(OnDuplicate::Keep, AT_END, "1") }).await;
        bench.pass(secs(1)).await;
        let mut last = NewJob { priority: 9, due: Due::In(secs(60)), expires: Some(secs(5)), ..replacing("2") };
        last.outset = Outset { timeout: Some(secs(7)), max_retries: Some(3), result_ttl: Some(secs(8)) };
        assert!(is_replaced(&bench, last.clone()).await);
        let job = bench.job(first).await;
        assert_eq!((job.state, job.priority, job.due_at), (State::Ready, 1, START.into()));
        assert_eq!((job.enqueued_at, job.expires_at), (START.into(), None));
        let claimed = bench.claim(bench.living, &["send"], 9).await;
        assert_eq!(claimed.len(), 1);
        assert_eq!((&claimed[0].payload, claimed[0].outset), (&last.payload, last.outset));
    }

    async fn arguments_of_any_size_are_replaced_by_those_of_any_other(bench: Bench) {
        let sizes = [0, 512, 513, 70_000, 2, 0, 600];
        bench.enqueue(call(OnDuplicate::Keep, AT_END, "")).await;
        for size in sizes {
            assert!(is_replaced(&bench, replacing(&"x".repeat(size))).await);
            let lease = bench.claim(bench.living, &["send"], 1).await.remove(0);
            assert_eq!(lease.payload.bytes.len(), size);
            bench.finish(bench.living, lease.lease, Transition::Release).await;
        }
    }

    async fn a_job_that_runs_is_left_as_it_is(bench: Bench) {
        bench.enqueue(replacing("1")).await;
        let lease = bench.claim(bench.living, &["send"], 1).await[0].lease;
        assert!(!is_replaced(&bench, replacing("2")).await);
        // A retry that waits is pending, and keeps its due time.
        let retry = Transition::Schedule { reason: ScheduledReason::Retry, due: Due::In(secs(5)), error: None };
        bench.finish(bench.living, lease, retry).await;
        let last = NewJob { due: Due::In(secs(60)), ..call(OnDuplicate::Postpone, AT_END, "3") };
        assert!(is_replaced(&bench, last).await);
        bench.pass(secs(5)).await;
        assert_eq!(claimed_arguments(&bench).await, ["3"]);
    }

    async fn a_job_that_has_ended_is_left_as_it_is(bench: Bench) {
        let first = bench.enqueue(call(OnDuplicate::Replace, Release::After(secs(60)), "1")).await;
        bench.store.cancel(first).await.expect("answers");
        assert!(!is_replaced(&bench, replacing("2")).await);
        assert!(!is_replaced(&bench, postponing(5, "3")).await);
        assert_eq!(bench.state(first).await, State::Cancelled);
    }

    async fn the_last_of_many_calls_says_when_the_job_is_due_and_with_what(bench: Bench) {
        let first = bench.enqueue(postponing(5, "1")).await;
        for number in 2..=4 {
            bench.pass(secs(4)).await;
            assert!(is_replaced(&bench, postponing(5, &number.to_string())).await);
        }
        let job = bench.job(first).await;
        assert_eq!(job.state, State::Scheduled(ScheduledReason::Delay));
        assert_eq!((job.due_at, job.enqueued_at), ((START + secs(17)).into(), START.into()));
        bench.pass(secs(5) - millis(1)).await;
        assert!(claimed_arguments(&bench).await.is_empty());
        bench.pass(millis(1)).await;
        assert_eq!(claimed_arguments(&bench).await, ["4"]);
        assert_eq!(bench.counts("send").await.pending(), 0);
        let next = bench.enqueue(postponing(5, "5")).await;
        assert_ne!(next, first, "its start has freed the key");
    }

    async fn a_job_that_has_become_due_is_not_postponed_any_more(bench: Bench) {
        let first = bench.enqueue(postponing(5, "1")).await;
        bench.pass(secs(5)).await;
        assert_eq!(bench.state(first).await, State::Ready);
        assert!(is_replaced(&bench, postponing(5, "2")).await);
        assert_eq!(bench.state(first).await, State::Ready);
        assert_eq!(claimed_arguments(&bench).await, ["2"]);
    }

    async fn an_expiry_moves_with_the_due_time_and_comes_and_goes_with_the_call(bench: Bench) {
        let expiring = |arguments| NewJob { expires: Some(secs(2)), ..postponing(5, arguments) };
        for (one, other, expires) in [
            (expiring("1"), expiring("2"), Some(secs(11))),
            (expiring("1"), postponing(5, "2"), None),
            (postponing(5, "1"), expiring("2"), Some(secs(11))),
        ] {
            let start = bench.store.clock().now();
            let first = bench.enqueue(one).await;
            bench.pass(secs(4)).await;
            assert!(is_replaced(&bench, other).await);
            let job = bench.job(first).await;
            assert_eq!(job.due_at, (start + secs(9)).into());
            assert_eq!(job.expires_at, expires.map(|expires| (start + expires).into()));
            bench.pass(secs(8)).await;
            let state = if expires.is_some() { State::Expired } else { State::Ready };
            assert_eq!(bench.state(first).await, state);
            bench.claim(bench.living, &["send"], 9).await;
        }
    }

    async fn a_job_of_a_partition_is_postponed_within_it(bench: Bench) {
        let of = |partition: &str, arguments| NewJob { partition: partition.into(), ..postponing(5, arguments) };
        let first = bench.enqueue(of("p", "1")).await;
        bench.pass(secs(4)).await;
        assert!(is_replaced(&bench, of("p", "2")).await);
        let elsewhere = Enqueue { queue: name("q"), jobs: vec![job("send"), of("r", "3")], max_pending: None, producer: None };
        let refused = bench.store.enqueue(elsewhere).await.expect_err("it is of another partition");
        assert!(matches!(refused, Error::Invalid { .. }), "{refused}");
        assert!(refused.to_string().contains(&first.to_string()), "{refused}");
        assert_eq!(bench.counts("send").await.pending(), 1, "all or nothing");
        bench.pass(secs(5)).await;
        assert_eq!(claimed_arguments(&bench).await, ["2"]);
        let kept = NewJob { partition: "r".into(), ..only("a", AT_END) };
        bench.enqueue(of("p", "4")).await;
        assert!(!is_replaced(&bench, kept).await, "who replaces nothing may be of any");
    }

    async fn calls_of_one_batch_replace_each_other(bench: Bench) {
        let batch = vec![replacing("1"), job("send"), replacing("2"), replacing("3")];
        let first = batch[0].id;
        let answers = bench.enqueue_many("q", batch).await;
        let told: Vec<_> = answers.iter().map(|answer| (answer.is_duplicate, answer.is_replaced)).collect();
        assert_eq!(told, [(false, false), (false, false), (true, true), (true, true)]);
        assert_eq!((answers[2].id, answers[3].id), (first, first));
        let claimed = bench.claim(bench.living, &["send"], 9).await;
        let of_first = claimed.iter().find(|job| job.lease.job == first).expect("it is there");
        assert_eq!(of_first.payload.bytes, b"3");
    }

    async fn a_batch_that_is_refused_replaces_nothing(bench: Bench) {
        bench.enqueue(replacing("1")).await;
        let batch = vec![replacing("2"), job("send")];
        let full = bench.store.enqueue(Enqueue { queue: name("q"), jobs: batch, max_pending: Some(1), producer: None });
        assert!(matches!(full.await, Err(Error::QueueFull { .. })));
        assert_eq!(claimed_arguments(&bench).await, ["1"]);
    }

    async fn a_postponed_job_is_waited_for_at_its_new_time(bench: Bench) {
        bench.enqueue(postponing(5, "1")).await;
        bench.pass(secs(3)).await;
        bench.enqueue(postponing(5, "2")).await;
        let (_, mut wait) = asleep(&bench, &["send"]).await;
        bench.pass(secs(4)).await;
        assert!(bench.is_pending(&mut wait).await, "it is not due yet");
        bench.hands.advance(secs(1));
        assert_eq!(woken(wait).await, ["q"]);
    }
}
