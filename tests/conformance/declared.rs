//! Declared limits: the youngest living worker's word holds, and what is set at runtime stands above it.

use flexiq::Limits;
use flexiq::internals::{Change, Overrides, Scope, Standing};

use crate::harness::*;

/// The cap that is declared for the task "send", and holds while nothing is set.
async fn declared(bench: &Bench) -> Option<u32> {
    let standings = bench.store.limits().await.expect("answers");
    let send = standings.into_iter().find(|standing| standing.scope == Scope::Task(name("send")));
    send.and_then(|standing| standing.declared.max_concurrent)
}

for_every_store! {
    async fn what_a_worker_declares_holds_from_its_start(bench: Bench) {
        let worker = bench.declaring(&[("send", cap(2))]).await;
        bench.enqueue_many("q", jobs("send", 5)).await;
        assert_eq!(bench.claim(worker, &["send"], 9).await.len(), 2);
    }

    async fn the_youngest_worker_that_lives_decides(bench: Bench) {
        let _old = bench.declaring(&[("send", cap(5))]).await;
        assert_eq!(declared(&bench).await, Some(5));
        let _new = bench.declaring(&[("send", cap(2))]).await;
        assert_eq!(declared(&bench).await, Some(2));
    }

    async fn a_worker_that_does_not_link_the_task_says_nothing_about_it(bench: Bench) {
        let old = bench.declaring(&[("send", cap(5))]).await;
        let _other = bench.declaring(&[("build", cap(1))]).await;
        assert_eq!(declared(&bench).await, Some(5));
        bench.declare(old, &[("send", cap(4))], Limits::default()).await;
        assert_eq!(declared(&bench).await, Some(4));
    }

    async fn no_limit_is_a_declaration_too(bench: Bench) {
        let old = bench.declaring(&[("send", cap(1))]).await;
        bench.enqueue_many("q", jobs("send", 5)).await;
        bench.claim(old, &["send"], 9).await;
        let (_, wait) = asleep(&bench, &["send"]).await;
        let new = bench.declaring(&[("send", Limits::default())]).await;
        assert_eq!(declared(&bench).await, None);
        assert_eq!(woken(wait).await, ["q"], "what it opens, it rings for");
        assert_eq!(bench.claim(new, &["send"], 9).await.len(), 4);
    }

    async fn when_the_youngest_retires_the_next_youngest_decides(bench: Bench) {
        let oldest = bench.declaring(&[("send", cap(5))]).await;
        let _middle = bench.declaring(&[("send", cap(4))]).await;
        let youngest = bench.declaring(&[("send", cap(3))]).await;
        bench.store.retire(oldest).await.expect("retires");
        assert_eq!(declared(&bench).await, Some(3));
        bench.store.retire(youngest).await.expect("retires");
        assert_eq!(declared(&bench).await, Some(4));
    }

    async fn when_the_last_retires_nothing_is_declared(bench: Bench) {
        let worker = bench.declaring(&[("send", cap(5))]).await;
        bench.store.retire(worker).await.expect("retires");
        assert!(bench.store.limits().await.expect("answers").is_empty());
    }

    async fn when_the_youngest_falls_silent_the_next_youngest_decides_at_a_beat(bench: Bench) {
        let old = bench.declaring(&[("send", cap(5))]).await;
        let _silent = bench.declaring(&[("send", cap(2))]).await;
        for _ in 0..3 {
            bench.pass(BEAT).await;
            bench.beat(old, &[]).await;
        }
        assert_eq!(declared(&bench).await, Some(2), "within its lease it holds");
        bench.pass(secs(1)).await;
        assert_eq!(declared(&bench).await, Some(5));
    }

    async fn a_claim_notices_that_the_youngest_is_silent(bench: Bench) {
        let old = bench.declaring(&[("send", cap(5))]).await;
        let _silent = bench.declaring(&[("send", cap(2))]).await;
        bench.enqueue_many("q", jobs("send", 9)).await;
        for _ in 0..3 {
            bench.pass(BEAT).await;
            bench.beat(old, &[]).await;
        }
        bench.hands.advance(secs(1));
        assert_eq!(bench.claim(old, &["send"], 9).await.len(), 5);
    }

    async fn a_silent_worker_that_beats_again_decides_again(bench: Bench) {
        let old = bench.declaring(&[("send", cap(5))]).await;
        let silent = bench.declaring(&[("send", cap(2))]).await;
        for _ in 0..4 {
            bench.pass(BEAT).await;
            bench.beat(old, &[]).await;
        }
        assert_eq!(declared(&bench).await, Some(5));
        assert!(!bench.beat(silent, &[]).await.is_unknown);
        assert_eq!(declared(&bench).await, Some(2));
    }

    async fn after_an_outage_no_declaration_lapses_before_the_living_could_beat(bench: Bench) {
        let old = bench.declaring(&[("send", cap(5))]).await;
        let young = bench.declaring(&[("send", cap(2))]).await;
        bench.enqueue_many("q", jobs("send", 9)).await;
        bench.hands.advance(secs(3_600));
        assert_eq!(bench.claim(young, &["send"], 9).await.len(), 2, "its claim comes before any beat");
        bench.beat(old, &[]).await;
        assert_eq!(declared(&bench).await, Some(2), "the old one is only the first to beat");
        bench.beat(young, &[]).await;
        assert_eq!(declared(&bench).await, Some(2));
    }

    async fn where_no_worker_lives_the_last_word_stands(bench: Bench) {
        let cut_off = bench.declaring(&[("send", cap(2))]).await;
        bench.enqueue_many("q", jobs("send", 9)).await;
        bench.pass(secs(60)).await;
        assert_eq!(bench.claim(cut_off, &["send"], 9).await.len(), 2);
    }

    async fn a_worker_that_registers_again_keeps_its_age(bench: Bench) {
        let old = bench.declaring(&[("send", cap(5))]).await;
        let _young = bench.declaring(&[("send", cap(2))]).await;
        bench.declare(old, &[("send", cap(4))], Limits::default()).await;
        assert_eq!(declared(&bench).await, Some(2));
    }

    async fn a_worker_that_registers_again_may_declare_something_else(bench: Bench) {
        let worker = bench.declaring(&[("send", cap(5)), ("build", cap(1))]).await;
        bench.declare(worker, &[("send", cap(4))], Limits::default()).await;
        assert_eq!(declared(&bench).await, Some(4));
        assert_eq!(bench.store.limits().await.expect("answers").len(), 1, "of build it says nothing");
    }

    async fn a_beat_of_a_worker_that_the_store_does_not_know_says_so(bench: Bench) {
        assert!(!bench.beat(bench.living, &[]).await.is_unknown);
        let unknown = flexiq::internals::WorkerId::new();
        assert!(bench.beat(unknown, &[]).await.is_unknown);
        assert!(bench.beat(unknown, &[]).await.is_unknown, "a beat does not make it known");
        bench.store.retire(bench.living).await.expect("retires");
        assert!(bench.beat(bench.living, &[]).await.is_unknown);
        bench.register(bench.living).await;
        assert!(!bench.beat(bench.living, &[]).await.is_unknown);
    }

    // https://github.com/sidekiq/sidekiq/issues/6185: a cap that its store had lost was wrong until a process restarted.
    async fn what_the_store_lost_of_a_declaration_holds_again_once_its_worker_has_beaten(bench: Bench) {
        let worker = bench.declaring(&[("send", cap(1))]).await;
        bench.enqueue_many("q", jobs("send", 9)).await;
        let held = bench.claim(worker, &["send"], 1).await;
        bench.store.retire(worker).await.expect("retires");
        assert_eq!(declared(&bench).await, None);
        assert!(bench.beat(worker, &[held[0].lease]).await.is_unknown, "so it registers again");
        bench.declare(worker, &[("send", cap(1))], Limits::default()).await;
        assert_eq!(declared(&bench).await, Some(1));
        assert!(bench.claim(worker, &["send"], 9).await.is_empty(), "what ran meanwhile is counted");
        bench.finish(worker, held[0].lease, succeed()).await;
        assert_eq!(bench.claim(worker, &["send"], 9).await.len(), 1);
    }

    async fn a_worker_that_was_silent_for_days_is_forgotten_with_its_word(bench: Bench) {
        let _gone = bench.declaring(&[("send", cap(2))]).await;
        for _ in 0..30 {
            bench.hands.advance(secs(3_600));
            bench.beat(bench.living, &[]).await;
        }
        // Beats an hour apart are silences of the fleet: who is gone is found by those that follow.
        bench.pass(secs(30)).await;
        assert!(bench.store.limits().await.expect("answers").is_empty());
    }

    async fn a_fleet_that_slept_for_days_forgets_none_of_its_own(bench: Bench) {
        let asleep = bench.declaring(&[("send", cap(1))]).await;
        bench.hands.advance(secs(2 * 24 * 3_600));
        bench.beat(bench.living, &[]).await;
        assert_eq!(declared(&bench).await, Some(1), "its cap still holds");
        assert!(!bench.beat(asleep, &[]).await.is_unknown);
    }

    async fn a_queue_limit_that_is_declared_holds(bench: Bench) {
        let worker = bench.worker().await;
        bench.declare(worker, &[], cap(2)).await;
        bench.enqueue_many("q", [jobs("send", 2), jobs("build", 2)].concat()).await;
        assert_eq!(bench.claim(worker, &["send", "build"], 9).await.len(), 2);
    }

    async fn an_override_stands_above_every_declaration_and_is_taken_back(bench: Bench) {
        let old = bench.declaring(&[("send", cap(1))]).await;
        bench.enqueue_many("q", jobs("send", 20)).await;
        bench.set_task("send", Change::MaxConcurrent(Some(3))).await;
        assert_eq!(bench.claim(old, &["send"], 9).await.len(), 3);
        let new = bench.declaring(&[("send", Limits { max_concurrent: Some(9), ..rate("100/m") })]).await;
        assert!(bench.claim(new, &["send"], 9).await.is_empty(), "it survives a deploy");
        bench.set_task("send", Change::MaxConcurrent(None)).await;
        assert_eq!(bench.claim(new, &["send"], 9).await.len(), 6);
    }

    async fn what_is_set_may_lie_above_what_is_declared_in_part(bench: Bench) {
        let limits = Limits { max_concurrent: Some(2), ..rate("5/m") };
        let _worker = bench.declaring(&[("send", limits.clone())]).await;
        bench.set_task("send", Change::Rates(Some(vec![]))).await;
        let standing = bench.store.limits().await.expect("answers").remove(0);
        assert_eq!(standing.limits(), cap(2));
        bench.enqueue_many("q", jobs("send", 9)).await;
        for _ in 0..4 {
            let held = bench.claim(bench.living, &["send"], 9).await;
            assert_eq!(held.len(), 2, "no rate holds");
            bench.turn(bench.living, finish_all(&held), None).await;
        }
    }

    async fn limits_tell_what_holds_and_where_it_comes_from(bench: Bench) {
        let limits = Limits { max_concurrent: Some(2), ..rate("10/s, 100/m spread") };
        let worker = bench.worker().await;
        let queue = Limits { max_concurrent: Some(7), max_pending: Some(9), ..rate("1/h") };
        bench.declare(worker, &[("send", limits.clone()), ("free", Limits::default())], queue.clone()).await;
        bench.set_task("send", Change::MaxConcurrent(Some(4))).await;
        bench.set_task("build", Change::Paused(true)).await;
        bench.set_queue(Change::MaxPending(Some(5))).await;
        bench.set_queue(Change::Rates(Some(rates("3/m")))).await;
        let none = (Limits::default(), Overrides::default());
        let expected = [
            Standing {
                scope: Scope::Queue(name("q")),
                declared: queue,
                overrides: Overrides {
                    rates: Some(rates("3/m")),
                    max_pending: Some(5),
                    ..Overrides::default()
                },
                is_paused: false,
            },
            Standing { scope: Scope::Task(name("build")), declared: none.0, overrides: none.1, is_paused: true },
            Standing {
                scope: Scope::Task(name("send")),
                declared: limits,
                overrides: Overrides { max_concurrent: Some(4), ..Overrides::default() },
                is_paused: false,
            },
        ];
        assert_eq!(bench.store.limits().await.expect("answers"), expected);
    }
}
