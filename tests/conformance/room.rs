//! room: producers that wait are woken by room, in the order of their arrival, and room is kept for them.

use flexiq::internals::{Change, Due, Enqueue, Enqueued, NewJob, ProducerId, Step};
use flexiq::{Error, JobId};

use crate::harness::*;

/// A batch that waits if it must, where the queue takes so many.
fn patient(producer: ProducerId, jobs: Vec<NewJob>, max_pending: u64) -> Enqueue {
    Enqueue { queue: name("q"), jobs, max_pending: Some(max_pending), producer: Some(producer) }
}

async fn send(
    bench: &Bench,
    producer: ProducerId,
    n: usize,
    max_pending: u64,
) -> flexiq::Result<Vec<Enqueued>> {
    bench.store.enqueue(patient(producer, jobs("send", n), max_pending)).await
}

/// A producer of its own that was refused, and surely waits.
async fn standing(bench: &Bench, n: usize, max_pending: u64) -> (ProducerId, Step<'_, ()>) {
    let producer = ProducerId::new();
    let answer = send(bench, producer, n, max_pending).await;
    assert!(matches!(answer, Err(Error::QueueFull { .. })), "{answer:?}");
    let mut room = bench.store.room(&name("q"), producer);
    assert!(bench.is_pending(&mut room).await, "there is no room yet");
    (producer, room)
}

/// Stores so many jobs of nobody who waits.
async fn fill(bench: &Bench, n: usize, max_pending: u64) -> flexiq::Result<Vec<JobId>> {
    let batch = Enqueue { producer: None, ..patient(ProducerId::new(), jobs("send", n), max_pending) };
    Ok(bench.store.enqueue(batch).await?.iter().map(|answer| answer.id).collect())
}

fn of_partition(partition: &str) -> NewJob {
    NewJob { partition: partition.into(), max_pending_per_partition: Some(1), ..job("export") }
}

fn exports(producer: ProducerId, partitions: &[&str]) -> Enqueue {
    Enqueue {
        max_pending: None,
        ..patient(producer, partitions.iter().copied().map(of_partition).collect(), 0)
    }
}

for_every_store! {
    async fn a_claim_wakes_a_producer_and_its_job_is_stored(bench: Bench) {
        fill(&bench, 2, 2).await.expect("there is room");
        let (producer, room) = standing(&bench, 1, 2).await;
        bench.claim(bench.living, &["send"], 1).await;
        soon(room).await.expect("it is told");
        send(&bench, producer, 1, 2).await.expect("there is room");
        assert_eq!(bench.counts("send").await.pending(), 2);
    }

    async fn whatever_makes_room_wakes_a_producer(bench: Bench) {
        bench.set_queue(Change::MaxPending(Some(2))).await;
        let expiring = NewJob { expires: Some(secs(1)), ..job("send") };
        let parted = NewJob { partition: "a".into(), ..job("export") };
        let ids = bench.enqueue_many("q", vec![expiring, parted]).await;
        let next = async |room: Step<'_, ()>, producer, max_pending, cause: &str| {
            soon(room).await.unwrap_or_else(|error| panic!("{cause}: {error}"));
            let stored = send(&bench, producer, 1, max_pending).await;
            stored.unwrap_or_else(|error| panic!("{cause}: {error}"))[0].id
        };
        let (producer, room) = standing(&bench, 1, 2).await;
        bench.pass(secs(1)).await;
        let second = next(room, producer, 2, "an expiry").await;
        let (producer, room) = standing(&bench, 1, 2).await;
        bench.store.cancel(second).await.expect("cancelled");
        next(room, producer, 2, "a cancel").await;
        let (producer, room) = standing(&bench, 1, 2).await;
        bench.store.cancel_partition(name("export"), "a".into()).await.expect("cancelled");
        next(room, producer, 2, "a cancel of a partition").await;
        let (producer, room) = standing(&bench, 1, 2).await;
        bench.set_queue(Change::MaxPending(Some(3))).await;
        next(room, producer, 2, "a raised limit").await;
        let (producer, room) = standing(&bench, 1, 4).await;
        bench.set_queue(Change::MaxPending(None)).await;
        next(room, producer, 4, "a limit that is taken back").await;
        assert_eq!((ids.len(), bench.counts("send").await.pending()), (2, 4));
    }

    async fn room_that_came_before_the_wait_began_counts(bench: Bench) {
        fill(&bench, 1, 1).await.expect("there is room");
        let producer = ProducerId::new();
        send(&bench, producer, 1, 1).await.expect_err("it is full");
        bench.claim(bench.living, &["send"], 1).await;
        soon(bench.store.room(&name("q"), producer)).await.expect("it is told");
    }

    async fn room_is_kept_for_a_batch_until_all_of_it_fits(bench: Bench) {
        fill(&bench, 3, 3).await.expect("there is room");
        let (large, mut room) = standing(&bench, 3, 3).await;
        let (small, mut behind) = standing(&bench, 1, 3).await;
        bench.claim(bench.living, &["send"], 2).await;
        assert!(bench.is_pending(&mut room).await && bench.is_pending(&mut behind).await);
        fill(&bench, 1, 3).await.expect_err("what is there is kept");
        send(&bench, small, 1, 3).await.expect_err("from those behind, too");
        bench.claim(bench.living, &["send"], 1).await;
        soon(room).await.expect("it is told");
        fill(&bench, 1, 3).await.expect_err("also while the batch is on its way");
        send(&bench, large, 3, 3).await.expect("all of it fits");
        assert!(bench.is_pending(&mut behind).await);
        bench.claim(bench.living, &["send"], 1).await;
        soon(behind).await.expect("it is told");
        send(&bench, small, 1, 3).await.expect("it fits");
        assert_eq!(bench.counts("send").await.pending(), 3);
    }

    async fn those_who_wait_come_in_by_the_order_of_their_arrival(bench: Bench) {
        fill(&bench, 2, 2).await.expect("there is room");
        let (first, room) = standing(&bench, 1, 2).await;
        let (second, mut behind) = standing(&bench, 1, 2).await;
        // To come again keeps the place.
        send(&bench, first, 1, 2).await.expect_err("there is no room yet");
        bench.claim(bench.living, &["send"], 1).await;
        soon(room).await.expect("it is told");
        assert!(bench.is_pending(&mut behind).await);
        send(&bench, second, 1, 2).await.expect_err("it is not its turn");
        send(&bench, first, 1, 2).await.expect("it is its turn");
        bench.claim(bench.living, &["send"], 2).await;
        soon(behind).await.expect("it is told");
        send(&bench, second, 1, 2).await.expect("it is its turn");
    }

    async fn one_that_leaves_the_line_gives_its_room_to_those_behind(bench: Bench) {
        fill(&bench, 3, 3).await.expect("there is room");
        let (large, room) = standing(&bench, 3, 3).await;
        let (small, mut behind) = standing(&bench, 1, 3).await;
        bench.claim(bench.living, &["send"], 1).await;
        assert!(bench.is_pending(&mut behind).await);
        drop(room);
        bench.store.leave_line(&name("q"), large);
        soon(behind).await.expect("it is told");
        send(&bench, small, 1, 3).await.expect("there is room");
    }

    async fn one_that_was_told_and_leaves_gives_its_room_back(bench: Bench) {
        fill(&bench, 1, 1).await.expect("there is room");
        let (first, room) = standing(&bench, 1, 1).await;
        let (second, behind) = standing(&bench, 1, 1).await;
        bench.claim(bench.living, &["send"], 1).await;
        soon(room).await.expect("it is told");
        bench.store.leave_line(&name("q"), first);
        soon(behind).await.expect("it is told");
        send(&bench, second, 1, 1).await.expect("there is room");
        fill(&bench, 1, 1).await.expect_err("it is full");
    }

    async fn one_that_does_not_come_again_loses_its_place(bench: Bench) {
        fill(&bench, 2, 2).await.expect("there is room");
        let dead = ProducerId::new();
        send(&bench, dead, 2, 2).await.expect_err("it is full");
        let (alive, room) = standing(&bench, 1, 2).await;
        bench.claim(bench.living, &["send"], 1).await;
        bench.hands.advance(secs(10));
        soon(room).await.expect("every ten seconds it may come again");
        send(&bench, alive, 1, 2).await.expect_err("room is kept for the one before it");
        bench.pass(secs(5)).await;
        soon(bench.store.room(&name("q"), alive)).await.expect("it is told, or comes by itself");
        send(&bench, alive, 1, 2).await.expect("there is room");
    }

    async fn a_partition_has_a_line_of_its_own_and_holds_back_no_other(bench: Bench) {
        let nobody = |partition| Enqueue { producer: None, ..exports(ProducerId::new(), &[partition]) };
        bench.store.enqueue(nobody("a")).await.expect("there is room");
        let (first, second) = (ProducerId::new(), ProducerId::new());
        let answer = bench.store.enqueue(exports(first, &["a"])).await;
        assert!(matches!(answer, Err(Error::PartitionFull { .. })), "{answer:?}");
        bench.store.enqueue(nobody("b")).await.expect("another partition has room");
        bench.store.enqueue(exports(second, &["b"])).await.expect_err("and is full now");
        let mut of_a = bench.store.room(&name("q"), first);
        let mut of_b = bench.store.room(&name("q"), second);
        assert!(bench.is_pending(&mut of_a).await && bench.is_pending(&mut of_b).await);
        assert_eq!(bench.claim(bench.living, &["export"], 1).await[0].partition, "a");
        soon(of_a).await.expect("it is told");
        assert!(bench.is_pending(&mut of_b).await);
        bench.store.enqueue(nobody("a")).await.expect_err("its room is kept");
        bench.store.enqueue(exports(first, &["a"])).await.expect("there is room");
        bench.set_partition("export", "b", Change::MaxPending(Some(2))).await;
        soon(of_b).await.expect("it is told");
        bench.store.enqueue(exports(second, &["b"])).await.expect("there is room");
    }

    async fn one_that_meets_another_limit_stands_in_that_line(bench: Bench) {
        bench.set_queue(Change::MaxPending(Some(2))).await;
        bench.store.enqueue(exports(ProducerId::new(), &["a"])).await.expect("there is room");
        let producer = ProducerId::new();
        let answer = bench.store.enqueue(exports(producer, &["a"])).await;
        assert!(matches!(answer, Err(Error::PartitionFull { .. })), "{answer:?}");
        bench.claim(bench.living, &["export"], 1).await;
        // Meanwhile the queue is full.
        fill(&bench, 2, 2).await.expect("there is room");
        let answer = bench.store.enqueue(exports(producer, &["a"])).await;
        assert!(matches!(answer, Err(Error::QueueFull { .. })), "{answer:?}");
        bench.claim(bench.living, &["send"], 1).await;
        soon(bench.store.room(&name("q"), producer)).await.expect("it is told");
        bench.store.enqueue(exports(producer, &["a"])).await.expect("there is room");
    }

    async fn a_batch_that_would_never_fit_is_refused_and_keeps_nothing(bench: Bench) {
        let producer = ProducerId::new();
        let answer = send(&bench, producer, 4, 3).await;
        let told = answer.expect_err("it is larger than the queue").to_string();
        assert!(told.contains("4 new jobs") && told.contains("at most 3"), "{told}");
        fill(&bench, 3, 3).await.expect("nothing is kept");
        let answer = bench.store.enqueue(exports(producer, &["a", "a"])).await;
        assert!(matches!(answer, Err(Error::Invalid { .. })), "{answer:?}");
        assert_eq!(bench.counts("export").await.pending(), 0);
    }

    async fn what_is_stored_already_is_found_first_and_waits_for_nothing(bench: Bench) {
        let known = jobs("send", 2);
        bench.store.enqueue(patient(ProducerId::new(), known.clone(), 2)).await.expect("there is room");
        let (_, _room) = standing(&bench, 1, 2).await;
        let again = bench.store.enqueue(patient(ProducerId::new(), known.clone(), 2)).await;
        assert!(again.expect("nothing is new").iter().all(|answer| answer.is_duplicate));
        // Of a batch, what is new counts.
        bench.claim(bench.living, &["send"], 1).await;
        let mixed = ProducerId::new();
        let batch = || patient(mixed, [known.clone(), jobs("send", 1)].concat(), 2);
        bench.store.enqueue(batch()).await.expect_err("room is kept for the one before it");
    }

    async fn a_scheduled_job_waits_for_room_like_any_other(bench: Bench) {
        fill(&bench, 1, 1).await.expect("there is room");
        let later = || vec![NewJob { due: Due::In(secs(60)), ..job("send") }];
        let producer = ProducerId::new();
        bench.store.enqueue(patient(producer, later(), 1)).await.expect_err("it is full");
        bench.claim(bench.living, &["send"], 1).await;
        soon(bench.store.room(&name("q"), producer)).await.expect("it is told");
        bench.store.enqueue(patient(producer, later(), 1)).await.expect("there is room");
        assert_eq!(bench.counts("send").await.scheduled, 1);
    }
}

for_every_store_with_bells! {
    async fn room_for_some_wakes_those_alone(bench: Bench) {
        fill(&bench, 10, 10).await.expect("there is room");
        let mut line = Vec::new();
        for _ in 0..20 {
            line.push(standing(&bench, 1, 10).await);
        }
        bench.claim(bench.living, &["send"], 3).await;
        let mut told = Vec::new();
        for (_, room) in &mut line {
            told.push(!bench.is_pending(room).await);
        }
        assert!(told.iter().enumerate().all(|(place, &is_told)| is_told == (place < 3)), "{told:?}");
    }
}
