//! pause and resume: of a task, and of a whole queue.

use flexiq::internals::{Change, Scope};

use crate::harness::*;

for_every_store! {
    async fn a_paused_task_starts_nothing_and_others_go_on(bench: Bench) {
        bench.set_task("send", Change::Paused(true)).await;
        bench.enqueue_many("q", [jobs("send", 2), jobs("build", 1)].concat()).await;
        let claimed = bench.claim(bench.living, &["send", "build"], 5).await;
        assert_eq!(claimed.iter().map(|claimed| &*claimed.task).collect::<Vec<_>>(), ["build"]);
        assert_eq!(bench.counts("send").await.ready, 2);
    }

    async fn a_paused_queue_starts_nothing_and_other_queues_go_on(bench: Bench) {
        bench.set_queue(Change::Paused(true)).await;
        bench.enqueue_many("q", jobs("send", 2)).await;
        bench.enqueue_many("other", jobs("send", 1)).await;
        assert!(bench.claim(bench.living, &["send"], 5).await.is_empty());
        let turn = flexiq::internals::Turn {
            worker: bench.living,
            queue: name("other"),
            number: next_number(),
            finishes: vec![],
            claim: Some(claim(&["send"], 5)),
        };
        assert_eq!(bench.store.turn(std::sync::Arc::new(turn)).await.expect("answers").claimed.len(), 1);
    }

    async fn what_runs_when_a_pause_begins_runs_on_and_is_finished(bench: Bench) {
        bench.enqueue_many("q", jobs("send", 3)).await;
        let held = bench.claim(bench.living, &["send"], 1).await;
        bench.set_task("send", Change::Paused(true)).await;
        bench.set_queue(Change::Paused(true)).await;
        let answer = bench.turn(bench.living, finish_all(&held), Some(claim(&["send"], 5))).await;
        assert_eq!(answer.finished, [flexiq::internals::Finished::Done]);
        assert!(answer.claimed.is_empty());
    }

    async fn a_resume_wakes_a_worker_that_waits(bench: Bench) {
        for scope in [Scope::Task(name("send")), Scope::Queue(name("q"))] {
            bench.store.limit(scope.clone(), Change::Paused(true)).await.expect("paused");
            bench.enqueue(job("send")).await;
            let (worker, wait) = asleep(&bench, &["send"]).await;
            bench.store.limit(scope, Change::Paused(false)).await.expect("resumed");
            assert_eq!(woken(wait).await, ["q"]);
            assert_eq!(bench.claim(worker, &["send"], 5).await.len(), 1);
        }
    }

    async fn a_task_waits_as_long_as_either_it_or_its_queue_is_paused(bench: Bench) {
        bench.set_task("send", Change::Paused(true)).await;
        bench.set_queue(Change::Paused(true)).await;
        bench.enqueue(job("send")).await;
        let (_, mut wait) = asleep(&bench, &["send"]).await;
        bench.set_task("send", Change::Paused(false)).await;
        assert!(bench.is_pending(&mut wait).await);
        bench.set_queue(Change::Paused(false)).await;
        assert_eq!(woken(wait).await, ["q"]);
    }

    async fn a_pause_silences_the_bell(bench: Bench) {
        bench.enqueue(job("send")).await;
        bench.set_task("send", Change::Paused(true)).await;
        let (_, mut wait) = asleep(&bench, &["send"]).await;
        bench.hands.advance(secs(60));
        assert!(bench.is_pending(&mut wait).await);
    }

    async fn a_resume_of_all_tasks_of_a_queue_wakes_a_worker_of_each(bench: Bench) {
        bench.set_queue(Change::Paused(true)).await;
        bench.enqueue_many("q", vec![job("send"), job("build")]).await;
        let (_, send) = asleep(&bench, &["send"]).await;
        let (_, build) = asleep(&bench, &["build"]).await;
        bench.set_queue(Change::Paused(false)).await;
        assert_eq!((woken(send).await, woken(build).await), (vec!["q".into()], vec!["q".into()]));
    }

    async fn pausing_twice_and_resuming_once_resumes(bench: Bench) {
        bench.set_task("send", Change::Paused(true)).await;
        bench.set_task("send", Change::Paused(true)).await;
        bench.set_task("send", Change::Paused(false)).await;
        bench.enqueue(job("send")).await;
        assert_eq!(bench.claim(bench.living, &["send"], 5).await.len(), 1);
        assert!(bench.store.limits().await.expect("answers").is_empty());
    }
}
