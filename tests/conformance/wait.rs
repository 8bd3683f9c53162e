//! wait: bells and alarms. A startable job's bell is rung, or a popped bell is on its way to a claim, or no worker
//! with room for it waits.

use flexiq::internals::NewJob;
use flexiq::internals::{Due, ScheduledReason, Transition};

use crate::harness::*;

for_every_store! {
    async fn an_enqueue_wakes_a_worker_that_waits(bench: Bench) {
        let (_, wait) = asleep(&bench, &["send"]).await;
        bench.enqueue(job("send")).await;
        assert_eq!(woken(wait).await, ["q"]);
    }

    async fn a_bell_that_was_rung_before_counts(bench: Bench) {
        bench.enqueue(job("send")).await;
        let worker = bench.worker().await;
        assert_eq!(woken(bench.store.wait(interest(worker, &[("q", &["send"])]))).await, ["q"]);
    }

    async fn a_worker_sleeps_through_bells_of_tasks_it_does_not_want(bench: Bench) {
        let (_, mut wait) = asleep(&bench, &["send"]).await;
        bench.enqueue(job("other")).await;
        bench.enqueue_many("elsewhere", vec![job("send")]).await;
        assert!(bench.is_pending(&mut wait).await);
    }

    async fn the_worker_that_wants_the_task_is_woken_and_not_the_one_before_it(bench: Bench) {
        let (_, mut other) = asleep(&bench, &["other"]).await;
        let (_, wait) = asleep(&bench, &["send"]).await;
        bench.enqueue(job("send")).await;
        assert_eq!(woken(wait).await, ["q"]);
        assert!(bench.is_pending(&mut other).await);
    }

    async fn a_claim_that_leaves_something_wakes_the_next_worker(bench: Bench) {
        let (first, wait) = asleep(&bench, &["send"]).await;
        let (_, next) = asleep(&bench, &["send"]).await;
        bench.enqueue_many("q", vec![job("send"), job("send")]).await;
        woken(wait).await;
        bench.claim(first, &["send"], 1).await;
        assert_eq!(woken(next).await, ["q"]);
    }

    async fn a_claim_that_leaves_nothing_silences_the_bell(bench: Bench) {
        bench.enqueue(job("send")).await;
        let busy = bench.worker().await;
        bench.claim(busy, &["send"], 1).await;
        let mut wait = bench.store.wait(interest(bench.living, &[("q", &["send"])]));
        assert!(bench.is_pending(&mut wait).await);
    }

    async fn a_bell_that_its_worker_cannot_use_goes_to_another(bench: Bench) {
        let (first, wait) = asleep(&bench, &["send", "other"]).await;
        let (_, next) = asleep(&bench, &["send"]).await;
        bench.enqueue(job("send")).await;
        woken(wait).await;
        // Meanwhile its room for "send" has gone: the claim does not name it.
        bench.claim(first, &["other"], 1).await;
        assert_eq!(woken(next).await, ["q"]);
    }

    async fn a_wait_that_is_dropped_loses_no_bell(bench: Bench) {
        let (_, wait) = asleep(&bench, &["send"]).await;
        let (_, next) = asleep(&bench, &["send"]).await;
        // The bell is handed to the first, which is never polled again.
        bench.enqueue(job("send")).await;
        drop(wait);
        assert_eq!(woken(next).await, ["q"]);
    }

    async fn a_wait_that_is_dropped_before_any_other_leaves_its_bell_rung(bench: Bench) {
        let (_, wait) = asleep(&bench, &["send"]).await;
        bench.enqueue(job("send")).await;
        drop(wait);
        let wait = bench.store.wait(interest(bench.living, &[("q", &["send"])]));
        assert_eq!(woken(wait).await, ["q"]);
    }

    async fn a_worker_that_retires_gives_back_what_it_popped(bench: Bench) {
        let (first, wait) = asleep(&bench, &["send"]).await;
        let (_, next) = asleep(&bench, &["send"]).await;
        bench.enqueue(job("send")).await;
        woken(wait).await;
        bench.store.retire(first).await.expect("retires");
        assert_eq!(woken(next).await, ["q"]);
    }

    async fn a_release_rings(bench: Bench) {
        bench.enqueue(job("send")).await;
        let held = bench.claim(bench.living, &["send"], 1).await;
        let (_, wait) = asleep(&bench, &["send"]).await;
        bench.finish(bench.living, held[0].lease, Transition::Release).await;
        assert_eq!(woken(wait).await, ["q"]);
    }

    async fn a_release_whose_turn_claims_the_job_again_wakes_nobody(bench: Bench) {
        bench.enqueue(job("send")).await;
        let held = bench.claim(bench.living, &["send"], 1).await;
        let (_, mut wait) = asleep(&bench, &["send"]).await;
        let finishes =
            vec![flexiq::internals::Finish::new(held[0].lease, Transition::Release)];
        bench.turn(bench.living, finishes, Some(claim(&["send"], 1))).await;
        assert!(bench.is_pending(&mut wait).await);
    }

    async fn a_retry_by_hand_rings(bench: Bench) {
        let id = bench.enqueue(job("send")).await;
        bench.store.cancel(id).await.expect("answers");
        bench.claim(bench.living, &["send"], 1).await;
        let (_, wait) = asleep(&bench, &["send"]).await;
        bench.store.retry(id).await.expect("answers");
        assert_eq!(woken(wait).await, ["q"]);
    }

    async fn the_keepers_claim_rings_for_tasks_that_it_does_not_link(bench: Bench) {
        let (keeper, alarm) = asleep(&bench, &["other"]).await;
        let (_, wait) = asleep(&bench, &["send"]).await;
        bench.enqueue(NewJob { due: Due::In(secs(1)), ..job("send") }).await;
        bench.hands.advance(secs(1));
        assert_eq!(woken(alarm).await, ["q"]);
        assert!(bench.claim(keeper, &["other"], 1).await.is_empty());
        assert_eq!(woken(wait).await, ["q"]);
    }

    async fn an_earlier_moment_than_the_keeper_knows_wakes_in_time(bench: Bench) {
        bench.enqueue(NewJob { due: Due::In(secs(60)), ..job("send") }).await;
        let (_, wait) = asleep(&bench, &["send"]).await;
        bench.enqueue(NewJob { due: Due::In(secs(1)), ..job("send") }).await;
        bench.hands.advance(secs(1));
        assert_eq!(woken(wait).await, ["q"]);
    }

    async fn when_the_keeper_leaves_another_keeps_the_time(bench: Bench) {
        bench.enqueue(NewJob { due: Due::In(secs(1)), ..job("send") }).await;
        let (_, keeper) = asleep(&bench, &["send"]).await;
        let (_, heir) = asleep(&bench, &["send"]).await;
        drop(keeper);
        bench.hands.advance(secs(1));
        assert_eq!(woken(heir).await, ["q"]);
    }

    async fn a_keeper_that_stops_between_its_alarm_and_its_claim_gives_the_alarm_back(bench: Bench) {
        bench.enqueue(NewJob { due: Due::In(secs(1)), ..job("send") }).await;
        let (first, keeper) = asleep(&bench, &["send"]).await;
        let (_, heir) = asleep(&bench, &["send"]).await;
        bench.hands.advance(secs(1));
        assert_eq!(woken(keeper).await, ["q"]);
        bench.store.retire(first).await.expect("retires");
        assert_eq!(woken(heir).await, ["q"]);
    }

    async fn a_retry_wakes_when_its_backoff_is_over(bench: Bench) {
        bench.enqueue(job("send")).await;
        let held = bench.claim(bench.living, &["send"], 1).await;
        let (_, mut wait) = asleep(&bench, &["send"]).await;
        let retry =
            Transition::Schedule { reason: ScheduledReason::Retry, due: Due::In(secs(2)), error: None };
        bench.finish(bench.living, held[0].lease, retry).await;
        bench.hands.advance(millis(1_999));
        assert!(bench.is_pending(&mut wait).await);
        bench.hands.advance(millis(1));
        assert_eq!(woken(wait).await, ["q"]);
    }

    async fn a_lease_that_runs_out_wakes_a_sleeper_that_reaps_it(bench: Bench) {
        let dead = bench.worker().await;
        bench.enqueue(job("send")).await;
        bench.claim(dead, &["send"], 1).await;
        let (sleeper, wait) = asleep(&bench, &["send"]).await;
        bench.pass(secs(9)).await;
        bench.hands.advance(secs(1));
        assert_eq!(woken(wait).await, ["q"]);
        assert_eq!(bench.claim(sleeper, &["send"], 1).await.len(), 1);
    }

    async fn an_expiry_wakes_a_sleeper_that_sees_to_it(bench: Bench) {
        bench.enqueue(NewJob { expires: Some(secs(5)), ..job("unlinked") }).await;
        let (sleeper, wait) = asleep(&bench, &["send"]).await;
        bench.hands.advance(secs(5));
        assert_eq!(woken(wait).await, ["q"]);
        bench.claim(sleeper, &["send"], 1).await;
        assert_eq!(bench.counts("unlinked").await.expired, 1);
    }

    async fn a_sleeper_is_not_woken_for_a_lease_that_is_renewed(bench: Bench) {
        let worker = bench.worker().await;
        bench.enqueue(job("send")).await;
        let held = bench.claim(worker, &["send"], 1).await;
        let (_, mut wait) = asleep(&bench, &["send"]).await;
        for _ in 0..6 {
            bench.hands.advance(BEAT);
            bench.beat(worker, &[held[0].lease]).await;
            assert!(bench.is_pending(&mut wait).await);
        }
    }
}

for_every_store_with_bells! {
    async fn of_two_queues_that_rang_two_workers_take_one_each(bench: Bench) {
        bench.enqueue_many("a", vec![job("send")]).await;
        bench.enqueue_many("c", vec![job("send")]).await;
        let tasks: &[&str] = &["send"];
        let all = [("a", tasks), ("b", tasks), ("c", tasks)];
        assert_eq!(woken(bench.store.wait(interest(bench.living, &all))).await, ["a"]);
        let other = bench.worker().await;
        assert_eq!(woken(bench.store.wait(interest(other, &all))).await, ["c"]);
    }

    async fn a_burst_is_shared_with_the_workers_that_wait(bench: Bench) {
        let (first, wait) = asleep(&bench, &["send"]).await;
        let (second, next) = asleep(&bench, &["send"]).await;
        let (_, mut stranger) = asleep(&bench, &["other"]).await;
        bench.enqueue_many("q", (0..10).map(|_| job("send")).collect()).await;
        woken(wait).await;
        assert_eq!(bench.claim(first, &["send"], 100).await.len(), 5);
        woken(next).await;
        assert_eq!(bench.claim(second, &["send"], 100).await.len(), 5, "nobody else wants them");
        assert!(bench.is_pending(&mut stranger).await);
    }

    async fn one_bell_wakes_one_worker(bench: Bench) {
        let (_, mut first) = asleep(&bench, &["send"]).await;
        let (_, mut second) = asleep(&bench, &["send"]).await;
        bench.enqueue(job("send")).await;
        let is_first = !bench.is_pending(&mut first).await;
        let is_second = !bench.is_pending(&mut second).await;
        assert!(is_first != is_second);
    }

    async fn a_job_that_becomes_due_while_all_sleep_wakes_one_of_them(bench: Bench) {
        let (_, mut first) = asleep(&bench, &["send"]).await;
        let (_, mut second) = asleep(&bench, &["send"]).await;
        bench.enqueue(NewJob { due: Due::In(secs(1)), ..job("send") }).await;
        bench.hands.advance(millis(999));
        assert!(bench.is_pending(&mut first).await && bench.is_pending(&mut second).await);
        bench.hands.advance(millis(1));
        let is_first = !bench.is_pending(&mut first).await;
        let is_second = !bench.is_pending(&mut second).await;
        assert!(is_first != is_second);
    }

    async fn a_beat_rings_what_is_startable(bench: Bench) {
        // A worker pops the bell and dies before its claim.
        let (_, wait) = asleep(&bench, &["send"]).await;
        bench.enqueue(job("send")).await;
        woken(wait).await;
        let (_, next) = asleep(&bench, &["send"]).await;
        bench.beat(bench.living, &[]).await;
        assert_eq!(woken(next).await, ["q"]);
    }
}
