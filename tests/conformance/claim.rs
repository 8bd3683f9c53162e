//! claim: only what is linked and fits, leased once, and bounded.

use flexiq::State;
use flexiq::internals::{Claim, Room};

use crate::harness::*;

fn room(task: &str, slot: usize, at_most: u32) -> Room {
    Room { task: name(task), slot, at_most, max_losses: 3 }
}

for_every_store! {
    async fn a_claimed_job_is_leased_to_one_worker_only(bench: Bench) {
        let id = bench.enqueue(job("send")).await;
        let (first, second) = (bench.worker().await, bench.worker().await);
        assert_eq!(ids(&bench.claim(first, &["send"], 10).await), [id]);
        assert!(bench.claim(second, &["send"], 10).await.is_empty());
        let job = bench.job(id).await;
        assert_eq!((job.state, job.runs), (State::Running, 1));
        assert_eq!(job.started_at, Some(START.into()));
    }

    async fn a_claim_takes_only_tasks_that_it_names(bench: Bench) {
        bench.enqueue(job("unlinked")).await;
        let id = bench.enqueue(job("linked")).await;
        let worker = bench.worker().await;
        assert_eq!(ids(&bench.claim(worker, &["linked", "never_enqueued"], 10).await), [id]);
        assert_eq!(bench.counts("unlinked").await.ready, 1);
    }

    async fn a_claim_takes_only_from_its_queue(bench: Bench) {
        bench.enqueue_many("other", vec![job("send")]).await;
        let worker = bench.worker().await;
        assert!(bench.claim(worker, &["send"], 10).await.is_empty());
    }

    async fn a_claim_takes_no_more_than_its_slots(bench: Bench) {
        bench.enqueue_many("q", (0..10).map(|_| job("send")).collect()).await;
        let worker = bench.worker().await;
        let answer = bench.turn(worker, vec![], Some(claim(&["send"], 3))).await;
        assert_eq!(answer.claimed.len(), 3);
        assert!(!answer.more, "no bound ended it: the room did");
        assert!(bench.claim(worker, &["send"], 0).await.is_empty());
        assert_eq!(bench.counts("send").await.ready, 7);
    }

    async fn each_kind_of_slot_and_each_task_has_its_own_room(bench: Bench) {
        let mut jobs = Vec::new();
        for task in ["mail", "report", "resize"] {
            jobs.extend((0..5).map(|_| job(task)));
        }
        bench.enqueue_many("q", jobs).await;
        let wanted = Claim {
            slots: vec![4, 2],
            tasks: vec![room("mail", 0, 1), room("report", 0, 100), room("resize", 1, 100)],
            lease: LEASE,
        };
        let claimed = bench.turn(bench.living, vec![], Some(wanted)).await.claimed;
        let of = |task: &str| claimed.iter().filter(|claimed| &*claimed.task == task).count();
        assert_eq!((of("mail"), of("report"), of("resize")), (1, 3, 2));
    }

    async fn a_claim_is_bounded_in_jobs_and_says_that_there_is_more(bench: Bench) {
        bench.enqueue_many("q", (0..1_001).map(|_| job("send")).collect()).await;
        let answer = bench.turn(bench.living, vec![], Some(claim(&["send"], 5_000))).await;
        assert_eq!((answer.claimed.len(), answer.more), (1_000, true));
        let answer = bench.turn(bench.living, vec![], Some(claim(&["send"], 5_000))).await;
        assert_eq!((answer.claimed.len(), answer.more), (1, false));
    }

    async fn a_claim_is_bounded_in_bytes_and_says_that_there_is_more(bench: Bench) {
        for _ in 0..6 {
            let mut large = job("send");
            large.payload.bytes = vec![b' '; 1 << 20];
            bench.enqueue(large).await;
        }
        let answer = bench.turn(bench.living, vec![], Some(claim(&["send"], 100))).await;
        assert_eq!((answer.claimed.len(), answer.more), (4, true));
    }

    async fn jobs_of_other_tasks_ahead_do_not_keep_a_job_waiting(bench: Bench) {
        for _ in 0..10 {
            bench.enqueue_many("q", (0..1_000).map(|_| job("blocked")).collect()).await;
        }
        let id = bench.enqueue(job("free")).await;
        assert_eq!(ids(&bench.claim(bench.living, &["free"], 10).await), [id]);
    }

    async fn each_run_has_the_next_number(bench: Bench) {
        bench.enqueue(job("send")).await;
        for run in 1..=3 {
            let claimed = bench.claim(bench.living, &["send"], 1).await;
            assert_eq!(claimed[0].lease.run, run);
            bench.finish(bench.living, claimed[0].lease, flexiq::internals::Transition::Release).await;
        }
    }
}
