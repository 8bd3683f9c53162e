//! Schedules: one job for each tick, whatever happens to the workers.

use std::time::Duration;

use flexiq::internals::{LATEST, ManualClock, Seen, Standby, TOLD_FOR};
use flexiq::{Error, Origin, Queue, ScheduleStatus, Worker};
use flexiq_tests::{Journal, Spy, Verb, after_start, soon};

use super::queue;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
/// The clocks of these tests begin so long before a minute is full.
const TO_FULL_MINUTE: Duration = Duration::from_secs(40);

#[flexiq::task(cron = "* * * * * *")]
async fn every_second(#[state] journal: Journal, #[default = 7] number: u32) {
    journal.note(format!("second {number}"));
}

#[flexiq::task(cron = "* * * * *")]
async fn missed_none(#[state] journal: Journal) {
    journal.note("none");
}

#[flexiq::task(cron = "* * * * *", catch_up = "one")]
async fn missed_one(#[state] journal: Journal) {
    journal.note("one");
}

#[flexiq::task(queue = "reports")]
async fn report(#[state] journal: Journal, month: String) {
    journal.note(month);
}

/// A worker for this task that has worked out when it ticks first.
async fn started(queue: &Queue, task: flexiq::Task, journal: &Journal) -> Worker {
    let name = task.name();
    let worker = queue.worker().tasks([task]).state(journal.clone()).start().await.expect("it starts");
    begun(queue, name).await;
    worker
}

/// Waits until a worker has worked out when a schedule ticks next.
async fn begun(queue: &Queue, name: &str) {
    let store = queue.below();
    let is_ahead = |standby: &Standby| matches!(standby.seen, Seen::Tick(next) if next > store.clock().now());
    let look = async {
        loop {
            let all = store.schedules().await.expect("shown");
            if all.iter().any(|standby| standby.name.as_str() == name && is_ahead(standby)) {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    soon(&format!("schedule {name} begins"), look).await;
}

/// Looks at a schedule until it is as it should be.
async fn until(queue: &Queue, name: &str, is_so: impl Fn(&ScheduleStatus) -> bool) -> ScheduleStatus {
    let look = async {
        loop {
            let all = queue.schedules().await.expect("shown");
            match all.into_iter().find(|status| status.name == name) {
                Some(status) if is_so(&status) => return status,
                _ => tokio::task::yield_now().await,
            }
        }
    };
    soon(&format!("schedule {name} is as it should be"), look).await
}

#[tokio::test]
async fn a_cron_runs_one_job_for_each_tick_with_the_defaults_of_its_task() {
    let (queue, clock) = queue().await;
    let journal = Journal::default();
    let worker = started(&queue, task_every_second(), &journal).await;
    for ticks in 1..=5 {
        clock.advance(SECOND);
        journal.wait_for("second 7", ticks).await;
    }
    let status = until(&queue, "every_second", |status| status.last.is_some()).await;
    assert_eq!(status.last.map(after_start), Some(SECOND * 5));
    assert_eq!((status.origin, status.task.as_str()), (Origin::Declared, "every_second"));
    worker.shutdown().await.expect("it stops");
    assert_eq!(journal.lines().len(), 5);
}

#[tokio::test]
async fn a_fleet_that_comes_and_goes_runs_one_job_for_each_tick() {
    const TICKS: u64 = 60;
    let seed = fastrand::u64(..);
    println!("FLEXIQ_SEED={seed}");
    let mut chance = fastrand::Rng::with_seed(seed);
    let (queue, clock) = queue().await;
    let journal = Journal::default();
    let mut workers: [Option<Worker>; 5] = [const { None }; 5];
    workers[0] = Some(started(&queue, task_every_second(), &journal).await);
    for _ in 0..TICKS {
        clock.advance(SECOND);
        let worker = &mut workers[chance.usize(..5)];
        match worker.take() {
            // Some stop in peace, others are only let go.
            Some(stops) if chance.bool() => soon("it stops", stops.shutdown()).await.expect("it stops"),
            Some(stops) => drop(stops),
            None => *worker = Some(start_one(&queue, &journal).await),
        }
        for _ in 0..chance.u32(..20) {
            tokio::task::yield_now().await;
        }
    }
    if workers[0].is_none() {
        workers[0] = Some(start_one(&queue, &journal).await);
    }
    // What was told to one that is gone, another is told of after a while; those that were let go may take some more.
    let mut ticks = TICKS;
    loop {
        let all = until(&queue, "every_second", |status| {
            status.last.map(after_start) == Some(SECOND * ticks as u32)
        });
        if tokio::time::timeout(SECOND, all).await.is_ok() {
            break;
        }
        assert!(ticks < TICKS + LATEST.as_secs(), "it ticks again");
        clock.advance(TOLD_FOR);
        ticks += TOLD_FOR.as_secs();
    }
    journal.wait_for("second 7", ticks as usize).await;
    for worker in workers.into_iter().flatten() {
        worker.shutdown().await.expect("it stops");
    }
    let counts = queue.counts().await.expect("counted");
    assert_eq!(counts.iter().map(|counts| counts.succeeded).sum::<u64>(), ticks, "one job for each tick");
    assert_eq!(journal.lines().len() as u64, ticks, "each ran once");
}

async fn start_one(queue: &Queue, journal: &Journal) -> Worker {
    let builder = queue.worker().tasks([task_every_second()]).state(journal.clone());
    builder.start().await.expect("it starts")
}

#[tokio::test]
async fn after_a_pause_of_the_whole_fleet_ticks_are_passed_over_or_one_is_made_up_for() {
    let (queue, clock) = queue().await;
    let journal = Journal::default();
    let builder = queue.worker().tasks([task_missed_none(), task_missed_one()]).state(journal.clone());
    let worker = builder.clone().start().await.expect("it starts");
    begun(&queue, "missed_none").await;
    begun(&queue, "missed_one").await;
    clock.advance(TO_FULL_MINUTE);
    journal.wait_for("none", 1).await;
    journal.wait_for("one", 1).await;
    worker.shutdown().await.expect("it stops");

    clock.advance(MINUTE * 60 + SECOND * 30);
    let worker = builder.start().await.expect("it starts");
    journal.wait_for("one", 2).await;
    begun(&queue, "missed_none").await;
    begun(&queue, "missed_one").await;
    assert_eq!((journal.count("none"), journal.count("one")), (1, 2));
    clock.advance(SECOND * 30);
    journal.wait_for("none", 2).await;
    journal.wait_for("one", 3).await;
    worker.shutdown().await.expect("it stops");
    assert_eq!((journal.count("none"), journal.count("one")), (2, 3));
}

#[tokio::test]
async fn a_tick_within_a_restart_takes_place() {
    let (queue, clock) = queue().await;
    let journal = Journal::default();
    started(&queue, task_missed_none(), &journal).await.shutdown().await.expect("it stops");
    clock.advance(TO_FULL_MINUTE + SECOND * 30);
    let worker = queue.worker().tasks([task_missed_none()]).state(journal.clone());
    let worker = worker.start().await.expect("it starts");
    journal.wait_for("none", 1).await;
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn a_tick_whose_worker_is_cut_off_is_left_to_whoever_is_told_next() {
    let (queue, clock) = queue().await;
    let spy = Spy::on(queue.below());
    let queue = Queue::on(spy.clone());
    let journal = Journal::default();
    let worker = started(&queue, task_missed_none(), &journal).await;
    // The first call only settles the first tick.
    spy.wait_for(Verb::Tick, 1).await;
    // It is told, and its tick never arrives.
    spy.lose_request(Verb::Tick);
    clock.advance(TO_FULL_MINUTE);
    spy.wait_for(Verb::Tick, 2).await;
    assert_eq!(journal.count("none"), 0);
    clock.advance(TOLD_FOR);
    journal.wait_for("none", 1).await;
    // The next arrives, and its answer does not.
    spy.lose_answer(Verb::Tick);
    clock.advance(MINUTE);
    journal.wait_for("none", 2).await;
    clock.advance(TOLD_FOR);
    worker.shutdown().await.expect("it stops");
    assert_eq!(journal.count("none"), 2);
}

#[tokio::test]
async fn a_cron_ends_with_the_last_worker_that_declares_it() {
    let (queue, clock) = queue().await;
    let journal = Journal::default();
    let first = started(&queue, task_missed_one(), &journal).await;
    let second = started(&queue, task_missed_one(), &journal).await;
    let other =
        queue.worker().tasks([task_report()]).state(journal.clone()).start().await.expect("it starts");
    first.shutdown().await.expect("it stops");
    clock.advance(TO_FULL_MINUTE);
    journal.wait_for("one", 1).await;
    let refused = queue.delete_schedule("missed_one").await.expect_err("it is declared").to_string();
    assert!(refused.contains("pause_schedule"), "{refused}");

    second.shutdown().await.expect("it stops");
    let status = until(&queue, "missed_one", |status| status.is_asleep).await;
    assert_eq!(status.next, None);
    for _ in 0..10 {
        clock.advance(MINUTE);
        until(&queue, "missed_one", |status| status.is_asleep).await;
    }
    queue.delete_schedule("missed_one").await.expect("nobody declares it");
    assert!(queue.schedules().await.expect("shown").is_empty());
    other.shutdown().await.expect("it stops");
    assert_eq!(journal.lines(), ["one"]);
}

/// A schedule at runtime, and a worker for its task alone.
async fn scheduled() -> (Queue, ManualClock, Journal, Worker) {
    let (queue, clock) = queue().await;
    let journal = Journal::default();
    let call = enqueue_report(&queue, "2026-10".into()).priority(3);
    queue.schedule("report-of-acme", "* * * * *", "Europe/Stockholm", call).await.expect("scheduled");
    let worker =
        queue.worker().tasks([task_report()]).state(journal.clone()).start().await.expect("it starts");
    begun(&queue, "report-of-acme").await;
    (queue, clock, journal, worker)
}

#[tokio::test]
async fn a_call_that_was_scheduled_runs_until_it_is_deleted() {
    let (queue, clock, journal, worker) = scheduled().await;
    let status = until(&queue, "report-of-acme", |_| true).await;
    assert_eq!((status.queue.as_str(), status.task.as_str()), ("reports", "report"));
    assert_eq!((status.cron.as_str(), status.timezone.as_str()), ("* * * * *", "Europe/Stockholm"));
    assert_eq!((status.origin, status.next.map(after_start)), (Origin::Set, Some(TO_FULL_MINUTE)));
    clock.advance(TO_FULL_MINUTE);
    journal.wait_for("2026-10", 1).await;

    queue.pause_schedule("report-of-acme").await.expect("paused");
    clock.advance(MINUTE * 10);
    let by_hand = queue.run_schedule_now("report-of-acme").await.expect("stored");
    soon("it runs by hand", by_hand.result()).await.expect("it succeeded");
    assert_eq!(by_hand.status().await.expect("it is kept").priority, 3);
    queue.resume_schedule("report-of-acme").await.expect("resumed");
    begun(&queue, "report-of-acme").await;
    assert_eq!(journal.count("2026-10"), 2);
    clock.advance(MINUTE);
    journal.wait_for("2026-10", 3).await;

    queue.delete_schedule("report-of-acme").await.expect("deleted");
    clock.advance(MINUTE);
    let last = enqueue_report(&queue, "last".into()).await.expect("stored");
    soon("the worker is awake", last.result()).await.expect("it succeeded");
    worker.shutdown().await.expect("it stops");
    assert_eq!(journal.count("2026-10"), 3);
}

#[tokio::test]
async fn what_is_wrong_with_a_schedule_is_said_before_anything_is_stored() {
    let (queue, _clock, _journal, worker) = scheduled().await;
    let call = || enqueue_report(&queue, "2026-11".into());
    let long = "x".repeat(20_000);
    for (refused, word) in [
        (queue.schedule("no spaces", "* * * * *", "UTC", call()).await, "schedule name"),
        (queue.schedule("s", "* * *", "UTC", call()).await, "five fields"),
        (queue.schedule("s", "0 0 31 2 *", "UTC", call()).await, "never comes"),
        (queue.schedule("s", "* * * * *", "Europe/Stokholm", call()).await, "Europe/Stockholm"),
        (queue.schedule("s", "* * * * *", "UTC", call().delay(SECOND)).await, "no due time"),
        (queue.schedule("s", "* * * * *", "UTC", call().or_wait(SECOND)).await, "skipped"),
        (queue.schedule("s", "* * * * *", "UTC", call().unique_key("a")).await, "no key"),
        (queue.schedule("s", "* * * * *", "UTC", call().priority(101)).await, "-100 to 100"),
        (queue.schedule("s", "* * * * *", "UTC", enqueue_report(&queue, long)).await, "at most 16384"),
        (
            queue.schedule("report-of-acme", "* * * * *", "UTC", enqueue_missed_one(&queue)).await,
            "in queue reports",
        ),
        (queue.pause_schedule("report-of-acne").await, r#"did you mean "report-of-acme"?"#),
        (queue.run_schedule_now("nothing").await.map(drop), "unknown schedule"),
    ] {
        let told = refused.expect_err(word).to_string();
        assert!(told.contains(word) && !told.contains("2026-11"), "{told}");
    }
    assert_eq!(queue.schedules().await.expect("shown").len(), 1);
    worker.shutdown().await.expect("it stops");
}

#[flexiq::task(cron = "* * * * *")]
async fn crowded(#[state] journal: Journal) {
    journal.note("crowded");
}

#[tokio::test]
async fn a_tick_without_room_is_skipped_and_shown() {
    let (queue, clock) = queue().await;
    let journal = Journal::default();
    queue.set_queue_max_pending("default", 1).await.expect("set");
    queue.pause_task("crowded").await.expect("paused");
    let worker = started(&queue, task_crowded(), &journal).await;
    clock.advance(TO_FULL_MINUTE);
    until(&queue, "crowded", |status| status.last.map(after_start) == Some(TO_FULL_MINUTE)).await;
    clock.advance(MINUTE);
    let skipped = Some(TO_FULL_MINUTE + MINUTE);
    until(&queue, "crowded", |status| status.last_skipped.map(after_start) == skipped).await;
    let refused = queue.run_schedule_now("crowded").await.expect_err("it is full");
    assert!(matches!(refused, Error::QueueFull { .. }), "{refused}");
    queue.resume_task("crowded").await.expect("resumed");
    journal.wait_for("crowded", 1).await;
    clock.advance(MINUTE);
    journal.wait_for("crowded", 2).await;
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn between_its_ticks_a_schedule_asks_nothing_of_the_store() {
    let (queue, clock) = queue().await;
    let spy = Spy::on(queue.below());
    let queue = Queue::on(spy.clone());
    let journal = Journal::default();
    let worker = started(&queue, task_missed_none(), &journal).await;
    clock.advance(TO_FULL_MINUTE);
    journal.wait_for("none", 1).await;
    spy.wait_for(Verb::Tick, 2).await;
    let turns = spy.calls(Verb::Turn);
    for _ in 0..50 {
        clock.advance(SECOND);
        tokio::task::yield_now().await;
    }
    // Whoever was woken has claimed before this job has ended.
    let by_hand = queue.run_schedule_now("missed_none").await.expect("stored");
    soon("the worker is awake", by_hand.result()).await.expect("it succeeded");
    // The end of the one job, and the start and the end of the other.
    let turns = spy.calls(Verb::Turn) - turns;
    assert!(turns <= 3, "{turns} turns");
    assert_eq!(spy.calls(Verb::Tick), 2);
    worker.shutdown().await.expect("it stops");
}
