//! A schedule on a fleet of processes of which one after the other is killed: one job for each tick, whoever was told of it.

use std::thread;
use std::time::{Duration, Instant};

use flexiq::{Queue, ScheduleStatus};
use serde_json::json;

use super::dose::{chance, dose};
use super::fleet;
use super::place::Place;
use super::process::Process;

const WORKERS: usize = 3;
const KILLS: usize = 8;

#[test]
fn a_schedule_makes_one_job_for_each_tick_whatever_workers_are_killed() {
    let place = Place::new();
    let queue = Queue::open(place.url()).blocking().expect("it opens");
    let mut chance = chance("schedule");
    let mut born = 0;
    let mut work = || {
        born += 1;
        Process::crew("work", &place.url(), &place.ledger().join(format!("worker-{born}")), &["kill-loop"])
    };
    // Nobody lives when it is set, so that its first tick is known.
    let mut first = work();
    schedule(&queue);
    first.signal("TERM");
    first.wait();
    queue.delete_schedule("clock").blocking().expect("it was set");
    fleet::drain(&queue, Duration::ZERO);
    let before = succeeded(&queue);
    schedule(&queue);
    let first = status(&queue).next.expect("it ticks");

    let mut workers: Vec<Process> = (0..WORKERS).map(|_| work()).collect();
    for _ in 0..KILLS * dose() {
        thread::sleep(Duration::from_millis(chance.u64(400..1_300)));
        workers.swap_remove(chance.usize(..WORKERS)).kill();
        workers.push(work());
    }
    queue.pause_schedule("clock").blocking().expect("it is there");
    fleet::drain(&queue, Duration::ZERO);
    let last = status(&queue).last.expect("it has ticked");
    let ticks = 1 + last.duration_since(first).expect("time goes on").as_secs();
    println!("schedule: {ticks} ticks while {} workers were killed", KILLS * dose());
    assert!(ticks >= 3, "it ticked {ticks} times");
    assert_eq!(succeeded(&queue) - before, ticks);
    for worker in &mut workers {
        worker.signal("TERM");
        worker.wait();
    }
}

/// Schedules a task for every second. It is not linked here: it is known when a worker has declared it.
fn schedule(queue: &Queue) {
    let begun = Instant::now();
    let call = || queue.enqueue_by_name("short", json!({"millis": 10}));
    while queue.schedule("clock", "* * * * * *", "UTC", call()).blocking().is_err() {
        assert!(begun.elapsed() < Duration::from_secs(30), "the workers declare their tasks");
        thread::sleep(Duration::from_millis(5));
    }
}

fn status(queue: &Queue) -> ScheduleStatus {
    let all = queue.schedules().blocking().expect("the store answers");
    all.into_iter().find(|status| status.name == "clock").expect("it is there")
}

fn succeeded(queue: &Queue) -> u64 {
    let counts = queue.counts().blocking().expect("the store answers");
    counts.iter().map(|counts| counts.succeeded).sum()
}
