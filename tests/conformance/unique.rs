//! Unique keys: at most one job of a queue has each, and who calls for it again is answered that job.

use flexiq::internals::{
    Change, Enqueue, LeaseId, NewJob, OnDuplicate, ProducerId, Release, Retried, Scope, Transition, Unique,
    UniqueKey,
};
use flexiq::{Error, JobId, State};

use crate::harness::*;

pub(crate) const AT_END: Release = Release::AtEnd { at_least: millis(0) };
pub(crate) const AT_START: Release = Release::AtStart { at_least: millis(0) };

/// A job of "send" that is the only one by this key.
pub(crate) fn only(key: &str, release: Release) -> NewJob {
    let key = UniqueKey::by_text(&name("send"), key);
    NewJob { unique: Some(Unique { key, release, on_duplicate: OnDuplicate::Keep }), ..job("send") }
}

/// The job that has the key "a" after a call for it.
pub(crate) async fn owner(bench: &Bench) -> JobId {
    bench.enqueue(only("a", AT_END)).await
}

/// Whether a call for the key "a" is stored.
pub(crate) async fn is_free(bench: &Bench) -> bool {
    !bench.enqueue_many("q", vec![only("a", AT_END)]).await[0].is_duplicate
}

pub(crate) async fn start(bench: &Bench) -> LeaseId {
    bench.claim(bench.living, &["send"], 1).await[0].lease
}

for_every_store! {
    async fn the_job_that_has_a_key_is_answered_and_nothing_is_stored(bench: Bench) {
        let first = owner(&bench).await;
        let again = bench.enqueue_many("q", vec![only("a", AT_END), only("b", AT_END)]).await;
        assert_eq!((again[0].id, again[0].is_duplicate, again[0].is_replaced), (first, true, false));
        assert!(!again[1].is_duplicate, "another key");
        assert_eq!(bench.counts("send").await.ready, 2);
        let elsewhere = bench.enqueue_many("other", vec![only("a", AT_END)]).await;
        assert!(!elsewhere[0].is_duplicate, "another queue");
    }

    async fn duplicates_within_a_batch_answer_the_first_of_them(bench: Bench) {
        let batch = ["a", "b", "a", "b", "a"].map(|key| only(key, AT_END)).to_vec();
        let ids: Vec<JobId> = batch.iter().map(|job| job.id).collect();
        let answers = bench.enqueue_many("q", batch).await;
        let answered: Vec<_> = answers.iter().map(|answer| (answer.id, answer.is_duplicate)).collect();
        let expected =
            [(ids[0], false), (ids[1], false), (ids[0], true), (ids[1], true), (ids[0], true)];
        assert_eq!(answered, expected);
        assert_eq!(bench.counts("send").await.ready, 2);
    }

    async fn a_batch_that_is_sent_again_finds_its_own_jobs_and_takes_nobodys_key(bench: Bench) {
        let batch = vec![only("a", AT_END), only("b", AT_END)];
        let ids = [batch[0].id, batch[1].id];
        bench.enqueue_many("q", batch.clone()).await;
        let again = bench.enqueue_many("q", batch.clone()).await;
        assert_eq!([again[0].id, again[1].id], ids);
        assert_eq!(bench.counts("send").await.ready, 2);
        // Also when the key is another's meanwhile.
        bench.store.cancel(ids[0]).await.expect("answers");
        let other = owner(&bench).await;
        let again = bench.enqueue_many("q", batch).await;
        assert_eq!([again[0].id, again[1].id], ids);
        assert_eq!(owner(&bench).await, other);
    }

    async fn a_duplicate_is_found_first_and_not_counted_as_pending(bench: Bench) {
        let limit = |max_pending| Change::MaxPending(Some(max_pending));
        bench.store.limit(Scope::Queue(name("q")), limit(2)).await.expect("set");
        let first = owner(&bench).await;
        let batch = vec![only("a", AT_END), only("b", AT_END), only("b", AT_END)];
        let answers = bench.enqueue_many("q", batch).await;
        assert!(answers[0].is_duplicate && !answers[1].is_duplicate && answers[2].is_duplicate);
        assert_eq!(owner(&bench).await, first, "although the queue is full");
        // A batch that is refused takes no key.
        let batch = vec![only("a", AT_END), only("c", AT_END)];
        let full = bench.store.enqueue(Enqueue { queue: name("q"), jobs: batch, max_pending: None, producer: None });
        assert!(matches!(full.await, Err(Error::QueueFull { pending: 2, .. })));
        bench.store.limit(Scope::Queue(name("q")), limit(9)).await.expect("set");
        assert!(!bench.enqueue_many("q", vec![only("c", AT_END)]).await[0].is_duplicate);
    }

    async fn a_duplicate_stands_in_no_line_and_wants_no_room(bench: Bench) {
        let patient = |jobs| Enqueue {
            queue: name("q"),
            jobs,
            max_pending: Some(1),
            producer: Some(ProducerId::new()),
        };
        let first = owner(&bench).await;
        let answer = bench.store.enqueue(patient(vec![only("a", AT_END)])).await.expect("it is there");
        assert_eq!(answer[0].id, first);
        // Of a batch that waits, what is new counts: one of three, so that it would fit alone.
        let batch = vec![only("a", AT_END), only("b", AT_END), only("b", AT_END)];
        let refused = bench.store.enqueue(patient(batch)).await;
        assert!(matches!(refused, Err(Error::QueueFull { .. })), "{refused:?}");
    }

    async fn a_retry_by_hand_takes_the_key_again_or_is_refused_naming_its_owner(bench: Bench) {
        let first = owner(&bench).await;
        bench.store.cancel(first).await.expect("answers");
        assert_eq!(bench.store.retry(first).await.expect("answers"), Retried::Done);
        assert_eq!(owner(&bench).await, first);
        bench.store.cancel(first).await.expect("answers");
        let second = owner(&bench).await;
        assert_eq!(bench.store.retry(first).await.expect("answers"), Retried::KeyTaken(second));
        assert_eq!(bench.state(first).await, State::Cancelled, "nothing was changed");
        bench.store.cancel(second).await.expect("answers");
        assert_eq!(bench.store.retry(first).await.expect("answers"), Retried::Done);
        assert_eq!(owner(&bench).await, first);
        // Until its start, it has it until its next start.
        let waiting = bench.enqueue(only("b", AT_START)).await;
        bench.claim(bench.living, &["send"], 2).await;
        bench.store.cancel(waiting).await.expect("answers");
        let held = LeaseId { job: waiting, run: 1 };
        bench.finish(bench.living, held, Transition::Cancel).await;
        assert_eq!(bench.store.retry(waiting).await.expect("answers"), Retried::Done);
        assert_eq!(bench.enqueue(only("b", AT_START)).await, waiting);
        start(&bench).await;
        assert_ne!(bench.enqueue(only("b", AT_START)).await, waiting);
    }

    async fn a_retry_by_hand_leaves_a_key_to_time_that_is_free_by_time_alone(bench: Bench) {
        let first = bench.enqueue(only("a", Release::After(secs(10)))).await;
        bench.store.cancel(first).await.expect("answers");
        bench.pass(secs(10)).await;
        let second = owner(&bench).await;
        assert_eq!(bench.store.retry(first).await.expect("answers"), Retried::Done);
        assert_eq!(owner(&bench).await, second);
    }
}
