//! rate limits: in any window of the period never more starts than the rate, and as many as it allows.

use flexiq::internals::{Change, Timestamp, Transition};

use crate::harness::*;

const MINUTE: std::time::Duration = secs(60);

/// The most starts in any half-open window of this length.
fn busiest(starts: &[Timestamp], window: std::time::Duration) -> usize {
    starts
        .iter()
        .map(|&from| starts.iter().filter(|&&at| from <= at && at < from + window).count())
        .max()
        .unwrap_or(0)
}

/// Claims all that may start, finishes it at once, and answers how much it was.
async fn run_all(bench: &Bench) -> usize {
    let claimed = bench.claim(bench.living, &["send"], 1_000).await;
    bench.turn(bench.living, finish_all(&claimed), Some(claim(&["send"], 0))).await;
    claimed.len()
}

async fn set_rate(bench: &Bench, text: &str) {
    bench.set_task("send", Change::Rates(Some(rates(text)))).await;
}

for_every_store! {
    // https://github.com/celery/celery/issues/2988: an idle minute gave no burst.
    async fn an_idle_task_starts_as_many_as_its_rate_at_once_and_the_next_when_they_have_left_the_window(bench: Bench) {
        set_rate(&bench, "100/m").await;
        bench.enqueue_many("q", jobs("send", 300)).await;
        assert_eq!(run_all(&bench).await, 100);
        assert_eq!(run_all(&bench).await, 0);
        bench.pass(MINUTE - millis(1)).await;
        assert_eq!(run_all(&bench).await, 0);
        bench.pass(millis(1)).await;
        assert_eq!(run_all(&bench).await, 100, "the window is half open");
    }

    async fn a_declared_rate_holds_across_workers_in_any_window(bench: Bench) {
        let workers = [
            bench.declaring(&[("send", rate("7/s"))]).await,
            bench.declaring(&[("send", rate("7/s"))]).await,
        ];
        bench.enqueue_many("q", jobs("send", 900)).await;
        let mut starts = Vec::new();
        for step in 0..200_u64 {
            bench.hands.advance(millis(step * 37 % 113));
            let worker = workers[step as usize % 2];
            let claimed = bench.claim(worker, &["send"], 1 + step as u32 % 4).await;
            starts.extend(claimed.iter().map(|claimed| claimed.claimed_at));
            if step % 10 == 0 {
                bench.beat(workers[0], &[]).await;
                bench.beat(workers[1], &[]).await;
                bench.turn(worker, finish_all(&claimed), None).await;
            }
        }
        assert_eq!(busiest(&starts, secs(1)), 7);
        let all = starts.last().expect("it started").since(starts[0]).as_secs() as usize;
        assert!(starts.len() >= 7 * all, "{} starts in {all} s", starts.len());
    }

    async fn all_of_several_rates_hold(bench: Bench) {
        set_rate(&bench, "3/s, 10/m").await;
        bench.enqueue_many("q", jobs("send", 100)).await;
        let mut per_second = Vec::new();
        for _ in 0..62 {
            per_second.push(run_all(&bench).await);
            bench.pass(secs(1)).await;
        }
        assert_eq!(per_second[..6], [3, 3, 3, 1, 0, 0]);
        assert_eq!(per_second[6..60].iter().sum::<usize>(), 0);
        assert_eq!(per_second[60..], [3, 3]);
    }

    async fn a_spread_rate_spaces_its_starts_evenly(bench: Bench) {
        set_rate(&bench, "100/m spread").await;
        bench.enqueue_many("q", jobs("send", 400)).await;
        let mut starts = Vec::new();
        for ms in 0..6_100 {
            if run_all(&bench).await > 0 {
                starts.push(ms);
            }
            bench.hands.advance(millis(1));
        }
        assert_eq!(starts, (0..=10).map(|n| n * 600).collect::<Vec<_>>());
        // Half a minute of silence is no credit.
        bench.pass(secs(30)).await;
        assert_eq!(run_all(&bench).await, 1);
    }

    async fn a_spread_rate_and_a_window_hold_together(bench: Bench) {
        set_rate(&bench, "10/s spread, 20/m").await;
        bench.enqueue_many("q", jobs("send", 100)).await;
        let mut started = 0;
        for _ in 0..100 {
            let now = run_all(&bench).await;
            assert!(now <= 1);
            started += now;
            bench.hands.advance(millis(100));
        }
        assert_eq!(started, 20);
    }

    async fn a_queue_rate_holds_over_its_tasks(bench: Bench) {
        bench.set_queue(Change::Rates(Some(rates("5/s")))).await;
        bench.enqueue_many("q", [jobs("send", 10), jobs("build", 10)].concat()).await;
        assert_eq!(bench.claim(bench.living, &["send"], 3).await.len(), 3);
        assert_eq!(bench.claim(bench.living, &["send", "build"], 10).await.len(), 2);
        bench.pass(secs(1)).await;
        assert_eq!(bench.claim(bench.living, &["build"], 10).await.len(), 5);
    }

    async fn a_changed_rate_keeps_its_log(bench: Bench) {
        set_rate(&bench, "10/m").await;
        bench.enqueue_many("q", jobs("send", 100)).await;
        assert_eq!(run_all(&bench).await, 10);
        bench.pass(secs(30)).await;
        set_rate(&bench, "15/m").await;
        assert_eq!(run_all(&bench).await, 5);
        set_rate(&bench, "5/m").await;
        bench.pass(secs(30)).await;
        assert_eq!(run_all(&bench).await, 0, "five of them are half a minute old");
        bench.pass(secs(30)).await;
        assert_eq!(run_all(&bench).await, 5);
    }

    async fn a_rate_that_is_cleared_and_set_again_keeps_its_log(bench: Bench) {
        set_rate(&bench, "10/m").await;
        bench.enqueue_many("q", jobs("send", 100)).await;
        assert_eq!(run_all(&bench).await, 10);
        bench.set_task("send", Change::Rates(None)).await;
        set_rate(&bench, "12/m").await;
        assert_eq!(run_all(&bench).await, 2);
    }

    async fn a_rate_that_becomes_spread_spaces_from_the_last_start(bench: Bench) {
        set_rate(&bench, "60/m").await;
        bench.enqueue_many("q", jobs("send", 100)).await;
        bench.claim(bench.living, &["send"], 1).await;
        set_rate(&bench, "60/m spread").await;
        bench.pass(millis(999)).await;
        assert_eq!(run_all(&bench).await, 0);
        bench.pass(millis(1)).await;
        assert_eq!(run_all(&bench).await, 1);
    }

    async fn a_job_that_was_started_has_spent_its_start_whatever_follows(bench: Bench) {
        set_rate(&bench, "2/m").await;
        bench.enqueue_many("q", jobs("send", 5)).await;
        let held = bench.claim(bench.living, &["send"], 5).await;
        bench.finish(bench.living, held[0].lease, Transition::Release).await;
        bench.finish(bench.living, held[1].lease, Transition::Cancel).await;
        assert!(bench.claim(bench.living, &["send"], 5).await.is_empty());
    }

    async fn a_clock_that_is_stepped_back_admits_no_start_too_many(bench: Bench) {
        set_rate(&bench, "10/m").await;
        bench.enqueue_many("q", jobs("send", 100)).await;
        assert_eq!(bench.claim(bench.living, &["send"], 6).await.len(), 6);
        bench.hands.step_to(START - secs(3_600));
        assert_eq!(bench.claim(bench.living, &["send"], 50).await.len(), 4, "the window is as it was");
        assert_eq!(bench.claim(bench.living, &["send"], 50).await.len(), 0);
        bench.hands.step_to(START + MINUTE - millis(1));
        assert_eq!(bench.claim(bench.living, &["send"], 50).await.len(), 0);
        bench.hands.step_to(START + MINUTE);
        assert_eq!(bench.claim(bench.living, &["send"], 50).await.len(), 10);
    }

    async fn starts_while_the_clock_was_stepped_back_are_as_new_as_those_before(bench: Bench) {
        set_rate(&bench, "10/m").await;
        bench.enqueue_many("q", jobs("send", 100)).await;
        assert_eq!(bench.claim(bench.living, &["send"], 4).await.len(), 4);
        bench.hands.step_to(START - secs(3_600));
        assert_eq!(bench.claim(bench.living, &["send"], 6).await.len(), 6);
        bench.hands.step_to(START + secs(30));
        set_rate(&bench, "6/m").await;
        assert_eq!(bench.claim(bench.living, &["send"], 50).await.len(), 0);
        bench.hands.step_to(START + MINUTE);
        assert_eq!(bench.claim(bench.living, &["send"], 50).await.len(), 6);
    }

    async fn a_window_that_opens_wakes_a_worker_that_waits(bench: Bench) {
        set_rate(&bench, "2/m").await;
        bench.enqueue(job("send")).await;
        assert_eq!(run_all(&bench).await, 1);
        bench.hands.advance(secs(10));
        bench.enqueue_many("q", jobs("send", 9)).await;
        assert_eq!(run_all(&bench).await, 1);
        let (worker, mut wait) = asleep(&bench, &["send"]).await;
        bench.hands.advance(secs(50) - millis(1));
        assert!(bench.is_pending(&mut wait).await);
        bench.hands.advance(millis(1));
        assert_eq!(woken(wait).await, ["q"]);
        let held = bench.claim(worker, &["send"], 5).await;
        assert_eq!(held.len(), 1);
        bench.turn(worker, finish_all(&held), Some(claim(&["send"], 5))).await;
        let (worker, mut wait) = asleep(&bench, &["send"]).await;
        bench.hands.advance(secs(10) - millis(1));
        assert!(bench.is_pending(&mut wait).await);
        bench.hands.advance(millis(1));
        assert_eq!(woken(wait).await, ["q"]);
        assert_eq!(bench.claim(worker, &["send"], 5).await.len(), 1);
    }

    async fn a_queues_window_that_opens_wakes_a_worker_that_waits(bench: Bench) {
        bench.set_queue(Change::Rates(Some(rates("2/m")))).await;
        bench.enqueue_many("q", jobs("send", 9)).await;
        assert_eq!(run_all(&bench).await, 2);
        let (_, mut wait) = asleep(&bench, &["send"]).await;
        bench.hands.advance(MINUTE - millis(1));
        assert!(bench.is_pending(&mut wait).await);
        bench.hands.advance(millis(1));
        assert_eq!(woken(wait).await, ["q"]);
    }

    async fn a_job_that_comes_while_its_rate_is_spent_wakes_a_worker_when_the_window_opens(bench: Bench) {
        set_rate(&bench, "1/m").await;
        bench.enqueue(job("send")).await;
        run_all(&bench).await;
        let (_, mut wait) = asleep(&bench, &["send"]).await;
        bench.enqueue(job("send")).await;
        assert!(bench.is_pending(&mut wait).await);
        bench.hands.advance(MINUTE);
        assert_eq!(woken(wait).await, ["q"]);
    }

    async fn a_beat_that_comes_before_the_window_opens_leaves_the_alarm(bench: Bench) {
        set_rate(&bench, "1/m").await;
        bench.enqueue_many("q", jobs("send", 2)).await;
        run_all(&bench).await;
        let (_, mut wait) = asleep(&bench, &["send"]).await;
        for _ in 0..19 {
            bench.pass(BEAT).await;
            assert!(bench.is_pending(&mut wait).await);
        }
        bench.pass(BEAT - millis(1)).await;
        assert!(bench.is_pending(&mut wait).await);
        bench.hands.advance(millis(1));
        assert_eq!(woken(wait).await, ["q"]);
    }

    async fn a_cap_that_is_freed_while_the_rate_is_spent_waits_for_the_window(bench: Bench) {
        bench.set_task("send", Change::MaxConcurrent(Some(1))).await;
        set_rate(&bench, "1/m").await;
        bench.enqueue_many("q", jobs("send", 2)).await;
        let held = bench.claim(bench.living, &["send"], 5).await;
        let (worker, mut wait) = asleep(&bench, &["send"]).await;
        bench.turn(bench.living, finish_all(&held), None).await;
        assert!(bench.is_pending(&mut wait).await);
        bench.hands.advance(MINUTE);
        assert_eq!(woken(wait).await, ["q"]);
        assert_eq!(bench.claim(worker, &["send"], 5).await.len(), 1);
    }

    async fn a_rate_that_is_raised_or_cleared_wakes_a_worker_that_waits(bench: Bench) {
        set_rate(&bench, "1/m").await;
        bench.enqueue_many("q", jobs("send", 9)).await;
        run_all(&bench).await;
        let (worker, wait) = asleep(&bench, &["send"]).await;
        set_rate(&bench, "2/m").await;
        assert_eq!(woken(wait).await, ["q"]);
        assert_eq!(bench.claim(worker, &["send"], 5).await.len(), 1);
        let (_, wait) = asleep(&bench, &["send"]).await;
        bench.set_task("send", Change::Rates(None)).await;
        assert_eq!(woken(wait).await, ["q"]);
    }

    async fn a_cap_and_a_rate_with_a_constant_backlog_start_exactly_the_rate(bench: Bench) {
        let limits = flexiq::Limits { max_concurrent: Some(2), ..rate("100/m") };
        let worker = bench.declaring(&[("send", limits)]).await;
        bench.enqueue_many("q", jobs("send", 400)).await;
        let mut starts: Vec<Timestamp> = Vec::new();
        let mut held = Vec::new();
        for tick in 0..1_800 {
            let answer = bench.turn(worker, finish_all(&held), Some(claim(&["send"], 10))).await;
            held = answer.claimed;
            assert!(held.len() <= 2);
            starts.extend(held.iter().map(|claimed| claimed.claimed_at));
            bench.hands.advance(millis(100));
            if tick % 20 == 0 {
                bench.beat(worker, &held.iter().map(|claimed| claimed.lease).collect::<Vec<_>>()).await;
            }
        }
        for minute in 0..3 {
            let from = START + MINUTE * minute;
            let in_it = starts.iter().filter(|&&at| from <= at && at < from + MINUTE).count();
            assert_eq!(in_it, 100, "in minute {minute}");
        }
        assert_eq!(busiest(&starts, MINUTE), 100);
    }
}

for_every_store_with_bells! {
    async fn the_keepers_claim_rings_for_an_opened_task_that_it_does_not_link(bench: Bench) {
        set_rate(&bench, "1/m").await;
        bench.enqueue_many("q", jobs("send", 2)).await;
        run_all(&bench).await;
        let (keeper, alarm) = asleep(&bench, &["other"]).await;
        let (_, mut wait) = asleep(&bench, &["send"]).await;
        bench.hands.advance(MINUTE);
        assert_eq!(woken(alarm).await, ["q"]);
        assert!(bench.is_pending(&mut wait).await);
        assert!(bench.claim(keeper, &["other"], 1).await.is_empty());
        assert_eq!(woken(wait).await, ["q"]);
    }
}
