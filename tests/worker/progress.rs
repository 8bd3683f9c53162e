//! What running tasks tell of themselves: when it is seen, what it costs, and that only the newest run is believed.

use std::sync::Arc;
use std::time::Duration;

use flexiq::internals::{Beat, Hello, Limits, ManualClock, Name, WorkerId};
use flexiq::{Context, Job, JobId, Progress, Queue, State, Task, Worker};
use flexiq_tests::{Journal, Spy, Verb, after_start, ended, soon, until};
use tokio::sync::Semaphore;

use super::queue;

/// From the first note until it is sent.
const GATHERED: Duration = Duration::from_millis(500);

/// Lets bodies go on, one for each permit.
#[derive(Clone)]
struct Gate(Arc<Semaphore>);

impl Gate {
    fn shut() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    async fn pass(&self) {
        self.0.acquire().await.expect("it is never closed").forget();
    }
}

/// Opens a gate when it is dropped.
struct Opened(Gate);

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.0.add_permits(1);
    }
}

/// Tells half, waits, and tells the rest.
#[flexiq::task]
async fn walk(#[context] context: Context, #[state] journal: Journal, #[state] gate: Gate) {
    tell_half(&context);
    journal.note("half");
    gate.pass().await;
    tell_rest(&context);
}

#[flexiq::task]
fn walk_plainly(#[context] context: Context, #[state] journal: Journal, #[state] gate: Gate) {
    tell_half(&context);
    journal.note("half");
    context.block_on(gate.pass());
    tell_rest(&context);
}

fn tell_half(context: &Context) {
    context.progress(5, 10, "half");
    context.log("half of it is done");
}

fn tell_rest(context: &Context) {
    context.progress(10, 10, "all");
    context.log("all of it is done");
}

/// Says very often how far it is, on a thread of its runtime that it never gives back until it is told to.
#[flexiq::task]
async fn run_hot(#[context] context: Context, #[state] journal: Journal, #[state] gate: Gate) {
    for done in 1..=100_000 {
        context.progress(done, None, "on and on");
    }
    journal.note("hot");
    while gate.0.available_permits() == 0 {
        std::thread::yield_now();
    }
}

/// Tells in its first run, and never ends by itself.
#[flexiq::task]
async fn wait_for_ever(#[context] context: Context, #[state] journal: Journal) -> Result<(), String> {
    if context.run() == 1 {
        context.progress(1, None, "mine");
        context.log("mine");
    }
    journal.note("waiting");
    context.cancelled().await;
    context.log("told to stop");
    Err("it was stopped".into())
}

async fn spied() -> (Queue, Arc<Spy>, ManualClock) {
    let (queue, clock) = queue().await;
    let spy = Spy::on(queue.below());
    (Queue::on(spy.clone()), spy, clock)
}

async fn start(queue: &Queue, task: Task, journal: &Journal, gate: &Gate) -> Worker {
    let builder = queue.worker().tasks([task]).state(journal.clone()).state(gate.clone());
    builder.start().await.expect("it starts")
}

async fn log(queue: &Queue, id: JobId) -> Vec<String> {
    let story = queue.story(id).await.expect("it is there");
    story.log.into_iter().map(|line| line.message).collect()
}

fn seen(job: &Job) -> Option<(u64, Option<u64>, &str)> {
    job.progress.as_ref().map(|Progress { done, total, message, .. }| (*done, *total, &**message))
}

#[tokio::test]
async fn what_a_run_tells_is_seen_within_half_a_second_and_the_last_of_it_with_its_end() {
    for (task, is_plain) in [(task_walk(), false), (task_walk_plainly(), true)] {
        let (queue, spy, clock) = spied().await;
        let (journal, gate) = (Journal::default(), Gate::shut());
        let worker = start(&queue, task, &journal, &gate).await;
        let id = match is_plain {
            true => enqueue_walk_plainly(&queue).await.expect("stored").id(),
            false => enqueue_walk(&queue).await.expect("stored").id(),
        };
        journal.wait_for("half", 1).await;
        assert_eq!(queue.status(id).await.expect("it is there").progress, None, "nothing is sent at once");
        clock.advance(GATHERED);
        spy.wait_for(Verb::Tell, 1).await;
        let status = queue.status(id).await.expect("it is there");
        assert_eq!(seen(&status), Some((5, Some(10), "half")));
        let at = status.progress.expect("it has told").at;
        assert_eq!(after_start(at), Duration::ZERO, "when it was said, not when it was sent");
        assert_eq!(log(&queue, id).await, ["half of it is done"]);
        gate.0.add_permits(1);
        let status = ended(&queue, id).await;
        assert_eq!((status.state, seen(&status)), (State::Succeeded, Some((10, Some(10), "all"))));
        let story = queue.story(id).await.expect("it is there");
        let lines: Vec<_> =
            story.log.iter().map(|line| (after_start(line.at), line.run, &*line.message)).collect();
        assert_eq!(lines, [(Duration::ZERO, 1, "half of it is done"), (GATHERED, 1, "all of it is done")]);
        assert_eq!(spy.calls(Verb::Tell), 1);
        worker.shutdown().await.expect("it stops");
    }
}

#[tokio::test]
async fn a_run_that_ends_soon_tells_all_with_its_end_and_costs_no_call() {
    let (queue, spy, clock) = spied().await;
    let (journal, gate) = (Journal::default(), Gate::shut());
    gate.0.add_permits(1);
    let worker = start(&queue, task_walk(), &journal, &gate).await;
    let job = enqueue_walk(&queue).await.expect("stored");
    let status = ended(&queue, job.id()).await;
    assert_eq!(seen(&status), Some((10, Some(10), "all")));
    assert_eq!(log(&queue, job.id()).await, ["half of it is done", "all of it is done"]);
    // Beats come and go, and nothing is told that is known.
    for _ in 0..3 {
        let beats = spy.calls(Verb::Extend);
        clock.advance(Duration::from_secs(3));
        spy.wait_for(Verb::Extend, beats + 1).await;
    }
    assert_eq!(spy.calls(Verb::Tell), 0);
    worker.shutdown().await.expect("it stops");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_hot_loop_that_never_yields_is_heard_and_only_its_newest_is_sent() {
    let (queue, spy, clock) = spied().await;
    let (journal, gate) = (Journal::default(), Gate::shut());
    // A test that fails must not be kept from it by the loop.
    let _opened = Opened(gate.clone());
    let worker = start(&queue, task_run_hot(), &journal, &gate).await;
    let job = enqueue_run_hot(&queue).await.expect("stored");
    journal.wait_for("hot", 1).await;
    assert_eq!(spy.calls(Verb::Tell), 0);
    clock.advance(GATHERED);
    spy.wait_for(Verb::Tell, 1).await;
    let status = job.status().await.expect("it is there");
    assert_eq!((status.state, seen(&status)), (State::Running, Some((100_000, None, "on and on"))));
    gate.0.add_permits(1);
    ended(&queue, job.id()).await;
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn what_the_store_did_not_hear_is_told_again_and_kept_once() {
    for is_lost_after in [false, true] {
        let (queue, spy, clock) = spied().await;
        let (journal, gate) = (Journal::default(), Gate::shut());
        let worker = start(&queue, task_walk(), &journal, &gate).await;
        match is_lost_after {
            true => spy.lose_answer(Verb::Tell),
            false => spy.lose_request(Verb::Tell),
        }
        let job = enqueue_walk(&queue).await.expect("stored");
        journal.wait_for("half", 1).await;
        clock.advance(GATHERED);
        spy.wait_for(Verb::Tell, 1).await;
        assert!(worker.health().is_ready(), "it takes jobs all the same");
        let again = async {
            // The pause begins when the answer is missed.
            while spy.calls(Verb::Tell) < 2 {
                clock.advance(GATHERED);
                tokio::task::yield_now().await;
            }
        };
        soon("it is told again", again).await;
        assert_eq!(log(&queue, job.id()).await, ["half of it is done"]);
        gate.0.add_permits(1);
        ended(&queue, job.id()).await;
        assert_eq!(log(&queue, job.id()).await, ["half of it is done", "all of it is done"]);
        worker.shutdown().await.expect("it stops");
    }
}

#[tokio::test]
async fn a_run_that_is_cancelled_brings_home_what_it_told_last() {
    let (queue, _clock) = queue().await;
    let journal = Journal::default();
    let worker = start(&queue, task_wait_for_ever(), &journal, &Gate::shut()).await;
    let job = enqueue_wait_for_ever(&queue).await.expect("stored");
    journal.wait_for("waiting", 1).await;
    job.cancel().await.expect("it is there");
    let status = ended(&queue, job.id()).await;
    assert_eq!((status.state, seen(&status)), (State::Cancelled, Some((1, None, "mine"))));
    assert_eq!(log(&queue, job.id()).await, ["mine", "told to stop"]);
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn a_run_whose_lease_is_lost_tells_nothing_any_more() {
    let (queue, spy, clock) = spied().await;
    let journal = Journal::default();
    let lease = Duration::from_secs(10);
    let builder = queue.worker().tasks([task_wait_for_ever()]).lease(lease).state(journal.clone());
    let worker = builder.start().await.expect("it starts");
    let job = enqueue_wait_for_ever(&queue).await.expect("stored");
    journal.wait_for("waiting", 1).await;
    // Neither what it tells nor its beats arrive, while another worker lives and reaps.
    spy.set_away(true);
    let other = WorkerId::new();
    let served = (Name::new("queue", "default").expect("a name"), Limits::default());
    let (label, queues) = ("bystander".into(), vec![served]);
    let hello = Hello { worker: other, label, lease, queues, tasks: Vec::new() };
    queue.below().register(hello).await.expect("it registers");
    let below = spy.below();
    let beat = async || {
        let (leases, permits, every) = (Vec::new(), Vec::new(), Duration::from_secs(3));
        let beat = Beat { worker: other, lease, every, leases, permits, report: None };
        below.extend(beat).await.expect("it beats");
    };
    for _ in 0..8 {
        clock.advance(Duration::from_secs(2));
        beat().await;
    }
    until(&queue, job.id(), "it is reaped", |job| job.losses == 1).await;
    spy.set_away(false);
    let moved = async {
        while journal.count("waiting") < 2 {
            clock.advance(GATHERED);
            beat().await;
            tokio::task::yield_now().await;
        }
        // More than it takes to tell.
        for _ in 0..10 {
            clock.advance(GATHERED);
            beat().await;
        }
    };
    soon("its job runs again", moved).await;
    let status = job.status().await.expect("it is there");
    assert_eq!((status.runs >= 2, status.progress), (true, None));
    assert!(!log(&queue, job.id()).await.contains(&"mine".to_owned()));
    drop(worker);
}
