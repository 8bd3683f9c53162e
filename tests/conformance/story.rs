//! story: the failures and losses of a job, and what it died of.

use flexiq::internals::{
    DeadReason, Due, Finish, LeaseId, MOST_SETBACKS, Retried, ScheduledReason, Transition,
};
use flexiq::{JobId, Setback, SetbackKind, State, Story};

use crate::harness::*;
use crate::tell::{claimed_by, one_line, story, tell};

fn retry(error: &str) -> Transition {
    Transition::Schedule { reason: ScheduledReason::Retry, due: Due::NOW, error: Some(error.into()) }
}

fn kill(reason: DeadReason, error: Option<&str>) -> Transition {
    Transition::Kill { reason, error: error.map(Into::into) }
}

async fn start_again(bench: &Bench) -> LeaseId {
    bench.claim(bench.living, &["send"], 1).await[0].lease
}

/// Of each setback its run, attempt, kind, message and death.
fn seen(setbacks: &[Setback]) -> Vec<(u32, u32, SetbackKind, &str, Option<DeadReason>)> {
    setbacks.iter().map(|it| (it.run, it.attempt, it.kind, &*it.message, it.death)).collect()
}

for_every_store! {
    async fn each_failure_is_kept_with_its_run_attempt_and_moment(bench: Bench) {
        let held = claimed_by(&bench, bench.living).await.lease;
        bench.hands.advance(secs(1));
        bench.finish(bench.living, held, retry("it broke")).await;
        // A deferral is no setback, and moves the run alone.
        let later = Transition::Schedule { reason: ScheduledReason::Deferral, due: Due::NOW, error: None };
        let again = start_again(&bench).await;
        bench.finish(bench.living, again, later).await;
        let last = start_again(&bench).await;
        bench.finish(bench.living, last, kill(DeadReason::Failures, Some("it broke for good"))).await;
        let setbacks = story(&bench, held.job).await.setbacks;
        assert_eq!(seen(&setbacks), [
            (1, 1, SetbackKind::Error, "it broke", None),
            (3, 2, SetbackKind::Error, "it broke for good", Some(DeadReason::Failures)),
        ]);
        assert_eq!(setbacks[0].at, (START + secs(1)).into());
    }

    async fn a_setback_is_what_its_worker_says_that_it_was(bench: Bench) {
        for setback in [SetbackKind::Error, SetbackKind::Panic, SetbackKind::Timeout] {
            let held = claimed_by(&bench, bench.living).await.lease;
            let finish = Finish { setback, ..Finish::new(held, kill(DeadReason::Failures, Some("x"))) };
            bench.turn(bench.living, vec![finish], None).await;
            assert_eq!(story(&bench, held.job).await.setbacks[0].kind, setback);
        }
    }

    async fn every_death_says_why(bench: Bench) {
        for (reason, kind) in [
            (DeadReason::Failures, SetbackKind::Error),
            (DeadReason::Never, SetbackKind::Error),
            (DeadReason::Decode, SetbackKind::Undecodable),
            (DeadReason::Deferrals, SetbackKind::Deferral),
        ] {
            let held = claimed_by(&bench, bench.living).await.lease;
            bench.finish(bench.living, held, kill(reason, None)).await;
            assert_eq!(seen(&story(&bench, held.job).await.setbacks), [(1, 1, kind, "", Some(reason))]);
        }
    }

    async fn a_loss_names_the_worker_that_was_lost(bench: Bench) {
        let mut workers = Vec::new();
        let id = bench.enqueue(job("send")).await;
        for _ in 0..2 {
            let worker = bench.worker().await;
            let mut wanted = claim(&["send"], 1);
            wanted.tasks[0].max_losses = 1;
            bench.turn(worker, vec![], Some(wanted)).await;
            bench.pass(LEASE).await;
            workers.push(format!("worker {worker} did not renew its lease"));
        }
        let kind = SetbackKind::Loss;
        assert_eq!(seen(&story(&bench, id).await.setbacks), [
            (1, 1, kind, &*workers[0], None),
            (2, 1, kind, &*workers[1], Some(DeadReason::Losses)),
        ]);
    }

    async fn what_moves_no_counter_of_failures_or_losses_is_no_setback(bench: Bench) {
        for transition in [succeed(), Transition::Release, Transition::PutBack, Transition::Cancel] {
            let held = claimed_by(&bench, bench.living).await.lease;
            bench.finish(bench.living, held, transition).await;
            assert_eq!(story(&bench, held.job).await, Story::default());
            bench.store.cancel(held.job).await.expect("answers");
        }
        // A job that was cancelled while it ran is not blamed for how it ended, nor for its worker.
        for is_lost in [true, false] {
            let worker = bench.worker().await;
            let held = claimed_by(&bench, worker).await.lease;
            bench.store.cancel(held.job).await.expect("answers");
            if is_lost {
                bench.pass(LEASE).await;
            } else {
                bench.finish(worker, held, retry("it was stopped")).await;
            }
            assert_eq!(bench.state(held.job).await, State::Cancelled);
            assert_eq!(story(&bench, held.job).await, Story::default());
        }
    }

    async fn the_newest_ten_setbacks_are_kept(bench: Bench) {
        let id = bench.enqueue(job("send")).await;
        for number in 1..=13 {
            let held = start_again(&bench).await;
            bench.finish(bench.living, held, retry(&number.to_string())).await;
        }
        let setbacks = story(&bench, id).await.setbacks;
        assert_eq!((setbacks.len(), &*setbacks[0].message, setbacks[0].attempt), (MOST_SETBACKS, "4", 4));
    }

    async fn sixteen_kibibytes_of_errors_are_kept(bench: Bench) {
        let id = bench.enqueue(job("send")).await;
        for _ in 0..6 {
            let held = start_again(&bench).await;
            bench.finish(bench.living, held, retry(&"x".repeat(4_096))).await;
        }
        let runs: Vec<u32> = story(&bench, id).await.setbacks.iter().map(|setback| setback.run).collect();
        assert_eq!(runs, [3, 4, 5, 6]);
    }

    async fn a_log_leaves_the_setbacks_their_room_and_they_it(bench: Bench) {
        let held = claimed_by(&bench, bench.living).await.lease;
        bench.finish(bench.living, held, retry("it broke")).await;
        let again = start_again(&bench).await;
        tell(&bench, bench.living, again, one_line()).await;
        let mut lines = one_line();
        let line = lines.lines.remove(0);
        lines.lines = (2..200).map(|number| flexiq::internals::Line { number, ..line.clone() }).collect();
        tell(&bench, bench.living, again, lines).await;
        let story = story(&bench, held.job).await;
        assert_eq!((story.log.len(), story.setbacks.len()), (100, 1));
    }

    async fn a_retry_by_hand_keeps_the_story(bench: Bench) {
        let held = claimed_by(&bench, bench.living).await.lease;
        tell(&bench, bench.living, held, one_line()).await;
        bench.finish(bench.living, held, kill(DeadReason::Never, Some("no"))).await;
        let before = story(&bench, held.job).await;
        assert_eq!(bench.store.retry(held.job).await.expect("answers"), Retried::Done);
        assert_eq!(bench.job(held.job).await.last_error, None);
        assert_eq!(story(&bench, held.job).await, before);
        // The next of a job whose counters are fresh again stands behind the others.
        let again = start_again(&bench).await;
        bench.finish(bench.living, again, kill(DeadReason::Never, Some("no again"))).await;
        let setbacks = story(&bench, held.job).await.setbacks;
        assert_eq!(setbacks.iter().map(|it| (it.run, it.attempt)).collect::<Vec<_>>(), [(1, 1), (2, 1)]);
        assert!(bench.store.delete(held.job).await.expect("answers"));
        assert_eq!(bench.store.story(held.job).await.expect("answers"), None);
    }

    async fn the_same_turn_again_tells_no_failure_twice(bench: Bench) {
        let held = claimed_by(&bench, bench.living).await.lease;
        for _ in 0..2 {
            bench.finish(bench.living, held, retry("it broke")).await;
        }
        assert_eq!(story(&bench, held.job).await.setbacks.len(), 1);
    }

    async fn many_fail_in_one_turn_and_each_has_its_own_story(bench: Bench) {
        bench.enqueue_many("q", (0..500).map(|_| job("send")).collect()).await;
        let held = bench.claim(bench.living, &["send"], 500).await;
        let finish = |(index, held): (usize, &flexiq::internals::Claimed)| {
            Finish::new(held.lease, kill(DeadReason::Never, Some(&index.to_string())))
        };
        bench.turn(bench.living, held.iter().enumerate().map(finish).collect(), None).await;
        for index in [0, 250, 499] {
            let setbacks = story(&bench, held[index].lease.job).await.setbacks;
            assert_eq!((setbacks.len(), &*setbacks[0].message), (1, &*index.to_string()));
        }
    }

    async fn a_job_that_is_not_there_has_no_story(bench: Bench) {
        assert_eq!(bench.store.story(JobId::new()).await.expect("answers"), None);
        let id = bench.enqueue(job("send")).await;
        assert_eq!(story(&bench, id).await, Story::default());
        assert_eq!(bench.store.story(JobId::new()).await.expect("answers"), None);
    }
}
