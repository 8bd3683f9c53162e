//! max_pending: no enqueue passes it by one, and what is in already is never refused.

use flexiq::Error;
use flexiq::internals::{Change, Due, Enqueue, Enqueued, NewJob, Retried, ScheduledReason, Transition};

use crate::harness::*;

async fn enqueue(bench: &Bench, jobs: Vec<NewJob>, max_pending: u64) -> flexiq::Result<Vec<Enqueued>> {
    bench
        .store
        .enqueue(Enqueue { queue: name("q"), jobs, max_pending: Some(max_pending), producer: None })
        .await
}

/// Limit and pending jobs that a refusal names.
#[track_caller]
fn refusal(answer: flexiq::Result<Vec<Enqueued>>) -> (u64, u64) {
    match answer {
        Err(Error::QueueFull { queue, max_pending, pending }) => {
            assert_eq!(queue, "q");
            (max_pending, pending)
        }
        other => panic!("not refused: {other:?}"),
    }
}

for_every_store! {
    async fn one_more_than_max_pending_is_refused(bench: Bench) {
        for _ in 0..3 {
            enqueue(&bench, jobs("send", 1), 3).await.expect("there is room");
        }
        assert_eq!(refusal(enqueue(&bench, jobs("send", 1), 3).await), (3, 3));
        assert_eq!(bench.counts("send").await.ready, 3);
    }

    async fn a_batch_is_stored_whole_or_not_at_all(bench: Bench) {
        enqueue(&bench, jobs("send", 2), 5).await.expect("there is room");
        assert_eq!(refusal(enqueue(&bench, jobs("send", 4), 5).await), (5, 2));
        assert_eq!(bench.counts("send").await.ready, 2);
        enqueue(&bench, jobs("send", 3), 5).await.expect("it fits exactly");
        assert_eq!(bench.counts("send").await.ready, 5);
    }

    async fn a_refused_batch_leaves_no_bell_and_no_task_behind(bench: Bench) {
        let (_, mut wait) = asleep(&bench, &["send"]).await;
        refusal(enqueue(&bench, jobs("send", 4), 3).await);
        assert!(bench.is_pending(&mut wait).await);
        assert_eq!(bench.counts("send").await.pending(), 0);
    }

    async fn many_producers_at_once_never_pass_it(bench: Bench) {
        // Each is handed over before the first is awaited, so that many are carried out together.
        let batch = |n: usize| Enqueue { queue: name("q"), jobs: jobs("send", 1 + n % 3), max_pending: Some(40), producer: None };
        let calls: Vec<_> = (0..50).map(|n| bench.store.enqueue(batch(n))).collect();
        let mut stored = 0;
        for call in calls {
            match call.await {
                Ok(answer) => stored += answer.len() as u64,
                other => assert!(refusal(other).1 <= 40),
            }
        }
        let pending = bench.counts("send").await.pending();
        assert!(pending == stored && pending <= 40, "{pending} of {stored}");
    }

    async fn scheduled_jobs_count_and_running_ones_do_not(bench: Bench) {
        let later = NewJob { due: Due::In(secs(60)), ..job("send") };
        enqueue(&bench, vec![later, job("send")], 2).await.expect("there is room");
        assert_eq!(refusal(enqueue(&bench, jobs("send", 1), 2).await), (2, 2));
        bench.claim(bench.living, &["send"], 1).await;
        enqueue(&bench, jobs("send", 1), 2).await.expect("the running one does not count");
        assert_eq!(refusal(enqueue(&bench, jobs("send", 1), 2).await), (2, 2));
    }

    async fn it_counts_all_tasks_of_the_queue_and_no_other_queue(bench: Bench) {
        bench.enqueue_many("other", jobs("send", 5)).await;
        enqueue(&bench, vec![job("send"), job("build")], 2).await.expect("there is room");
        assert_eq!(refusal(enqueue(&bench, jobs("send", 1), 2).await), (2, 2));
    }

    async fn room_reopens_as_jobs_are_claimed_cancelled_and_expire(bench: Bench) {
        let expiring = || NewJob { expires: Some(secs(1)), ..job("send") };
        let ids = enqueue(&bench, vec![job("send"), job("send"), expiring()], 3).await.expect("stored");
        bench.claim(bench.living, &["send"], 1).await;
        enqueue(&bench, jobs("send", 1), 3).await.expect("one was claimed");
        refusal(enqueue(&bench, jobs("send", 1), 3).await);
        bench.store.cancel(ids[1].id).await.expect("cancelled");
        enqueue(&bench, jobs("send", 1), 3).await.expect("one was cancelled");
        refusal(enqueue(&bench, jobs("send", 1), 3).await);
        bench.pass(secs(1)).await;
        enqueue(&bench, jobs("send", 1), 3).await.expect("one has expired");
    }

    async fn a_duplicate_is_found_first_and_not_counted(bench: Bench) {
        let known = jobs("send", 3);
        enqueue(&bench, known.clone(), 3).await.expect("there is room");
        let again = enqueue(&bench, known.clone(), 3).await.expect("nothing is new");
        assert!(again.iter().all(|answer| answer.is_duplicate));
        let mixed = vec![known[0].clone(), job("send")];
        assert_eq!(refusal(enqueue(&bench, mixed, 3).await), (3, 3));
        bench.claim(bench.living, &["send"], 1).await;
        let twice = job("send");
        let mixed = vec![known[0].clone(), twice.clone(), twice];
        let answer = enqueue(&bench, mixed, 3).await.expect("one of three is new");
        assert_eq!(answer.iter().map(|answer| answer.is_duplicate).collect::<Vec<_>>(), [true, false, true]);
    }

    async fn an_override_stands_above_the_callers_and_is_taken_back(bench: Bench) {
        bench.set_queue(Change::MaxPending(Some(1))).await;
        bench.enqueue(job("send")).await;
        let plain = Enqueue { queue: name("q"), jobs: jobs("send", 1), max_pending: None, producer: None };
        assert_eq!(refusal(bench.store.enqueue(plain.clone()).await), (1, 1), "also where nothing is declared");
        assert_eq!(refusal(enqueue(&bench, jobs("send", 1), 100).await), (1, 1));
        bench.set_queue(Change::MaxPending(Some(3))).await;
        enqueue(&bench, jobs("send", 2), 1).await.expect("the override is the wider");
        bench.set_queue(Change::MaxPending(None)).await;
        assert_eq!(refusal(enqueue(&bench, jobs("send", 1), 1).await), (1, 3));
        bench.store.enqueue(plain).await.expect("no limit holds");
    }

    async fn what_is_in_already_is_never_refused(bench: Bench) {
        bench.set_queue(Change::MaxPending(Some(2))).await;
        bench.enqueue_many("q", jobs("send", 2)).await;
        let schedule = |reason| Transition::Schedule { reason, due: Due::In(secs(1)), error: None };
        for transition in [
            Transition::Release,
            schedule(ScheduledReason::Retry),
            schedule(ScheduledReason::Deferral),
        ] {
            let held = bench.claim(bench.living, &["send"], 1).await[0].lease;
            bench.enqueue(job("send")).await;
            bench.finish(bench.living, held, transition).await;
            assert_eq!(bench.counts("send").await.pending(), 3, "one above the limit");
            bench.pass(secs(1)).await;
            bench.store.cancel(held.job).await.expect("cancelled");
        }
        let ended = bench.claim(bench.living, &["send"], 1).await[0].lease;
        bench.finish(bench.living, ended, Transition::Cancel).await;
        bench.enqueue(job("send")).await;
        assert_eq!(bench.store.retry(ended.job).await.expect("answers"), Retried::Done);
        assert_eq!(bench.counts("send").await.pending(), 3, "by hand, too");
    }
}
