//! Named limits through a body's context and whole workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use flexiq::internals::ManualClock;
use flexiq::{Context, DeadReason, JobHandle, Queue, Retry, ScheduledReason, State};
use flexiq_tests::{Journal, Spy, Verb, soon};
use tokio::sync::Semaphore;

use super::queue;

/// What the bodies of a test share: how many are at work, and how many may go on.
#[derive(Clone)]
struct Partner {
    calls: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    may_end: Arc<Semaphore>,
}

impl Partner {
    fn new(may_end: usize) -> Self {
        Self { calls: Arc::default(), most: Arc::default(), may_end: Arc::new(Semaphore::new(may_end)) }
    }

    async fn call(&self) {
        let calls = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(calls, Ordering::SeqCst);
        self.may_end.acquire().await.expect("never closed").forget();
        self.calls.fetch_sub(1, Ordering::SeqCst);
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

/// A single failure would end it.
#[flexiq::task(queue = "posts", max_retries = 0)]
async fn tell(
    #[context] context: Context,
    #[state] partner: Partner,
    #[state] journal: Journal,
    account: String,
) -> Result<(), Retry> {
    journal.note(format!("run {}", context.job_id()));
    let _permit = context.limit("partner").key(&account).concurrency(2).acquire().await?;
    partner.call().await;
    Ok(())
}

/// Waits until it is so.
async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let look = async {
        while !is_so().await {
            tokio::task::yield_now().await;
        }
    };
    soon(what, look).await;
}

/// The same limit from another task in another queue, as a plain function.
#[flexiq::task(queue = "sweeps")]
fn sweep(#[context] context: Context, #[state] partner: Partner, account: String) -> Result<(), Retry> {
    let _permit = context.block_on(context.limit("partner").key(&account).concurrency(2).acquire())?;
    context.block_on(partner.call());
    Ok(())
}

// https://github.com/Bogdanp/dramatiq/issues/257: a job was dropped unrun, its limit being busy as often as it had tries.
#[tokio::test]
async fn tasks_of_two_queues_share_a_limit_and_each_job_starts_in_vain_at_most_once() {
    let (queue, _clock) = queue().await;
    let (partner, journal) = (Partner::new(0), Journal::default());
    let mut jobs = Vec::new();
    for _ in 0..20 {
        jobs.push(enqueue_tell(&queue, "acme".into()).await.expect("stored"));
        jobs.push(enqueue_sweep(&queue, "acme".into()).await.expect("stored"));
    }
    let builder = queue.worker().tasks([task_tell(), task_sweep()]).workers(40);
    let worker = builder.state(partner.clone()).state(journal).start().await.expect("it starts");
    until("both permits are used", async || partner.calls.load(Ordering::SeqCst) == 2).await;
    partner.may_end.add_permits(40);
    for job in &jobs {
        soon("it runs", job.result()).await.expect("it succeeded");
        let job = job.status().await.expect("it is kept");
        assert!(job.deferrals <= 1, "{} deferrals", job.deferrals);
        assert_eq!((job.failures, job.losses), (0, 0));
    }
    assert_eq!(partner.most(), 2, "never a third");
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn a_job_that_is_refused_waits_without_a_slot_and_says_so() {
    let (queue, _clock) = queue().await;
    let (partner, journal) = (Partner::new(0), Journal::default());
    let builder = queue.worker().tasks([task_tell()]).async_concurrency(3);
    let worker = builder.state(partner.clone()).state(journal).start().await.expect("it starts");
    let acme: Vec<_> =
        queue.enqueue_many((0..3).map(|_| enqueue_tell(&queue, "acme".into()))).await.expect("stored");
    let is_waiting = async || {
        let mut waiting = 0;
        for job in &acme {
            let state = job.status().await.expect("it is stored").state;
            waiting += usize::from(state == State::Scheduled(ScheduledReason::Limit));
        }
        waiting == 1
    };
    until("one of three waits", is_waiting).await;
    let other = enqueue_tell(&queue, "brick".into()).await.expect("stored");
    until("another key has its slot", async || partner.calls.load(Ordering::SeqCst) == 3).await;
    partner.may_end.add_permits(4);
    for job in acme.iter().chain([&other]) {
        soon("it runs", job.result()).await.expect("it succeeded");
    }
    worker.shutdown().await.expect("it stops");
}

#[flexiq::task(queue = "posts")]
async fn mail(#[context] context: Context, #[state] journal: Journal, number: u32) -> Result<(), Retry> {
    let permit = context.limit("mail").rate("2/m").acquire().await?;
    journal.note(number.to_string());
    if number == 1 && context.deferrals() == 0 {
        return Err(permit.hold(Duration::from_secs(90)).await);
    }
    Ok(())
}

/// Lets time pass; the worker beats on the way.
async fn pass(seconds: u64, clock: &ManualClock, spy: &Spy) {
    for _ in 0..seconds / 3 {
        let beats = spy.calls(Verb::Extend);
        clock.advance(Duration::from_secs(3));
        spy.wait_for(Verb::Extend, beats + 1).await;
    }
}

#[tokio::test]
async fn a_rate_lets_two_start_in_a_minute_and_a_hold_none_before_its_own_job() {
    let (queue, clock) = queue().await;
    let spy = Spy::on(queue.below());
    let queue = Queue::on(spy.clone());
    let journal = Journal::default();
    let worker = queue.worker().tasks([task_mail()]).async_concurrency(1).state(journal.clone());
    let worker = worker.start().await.expect("it starts");
    let mut jobs = Vec::new();
    for number in 1..=4 {
        jobs.push(enqueue_mail(&queue, number).await.expect("stored"));
    }
    let wait = async |job: &JobHandle<()>| {
        let limited = State::Scheduled(ScheduledReason::Limit);
        until("it waits", async || job.status().await.expect("stored").state == limited).await;
    };
    for job in &jobs {
        wait(job).await;
    }
    assert_eq!(journal.lines(), ["1"]);
    pass(87, &clock, &spy).await;
    assert_eq!(journal.lines(), ["1"], "the hold is not over");
    pass(3, &clock, &spy).await;
    until("two start", async || journal.lines().len() == 3).await;
    assert_eq!(
        (journal.count("1"), journal.count("2")),
        (2, 1),
        "the one that held it, and who was first behind it"
    );
    pass(60, &clock, &spy).await;
    for job in &jobs {
        soon("it runs", job.result()).await.expect("it succeeded");
    }
    assert_eq!(journal.lines().len(), 5);
    worker.shutdown().await.expect("it stops");
}

#[flexiq::task(queue = "posts")]
async fn wrong(#[context] context: Context) -> Result<(), Retry> {
    let _permit = context.limit("mail").rate("2/x").acquire().await?;
    Ok(())
}

#[tokio::test]
async fn a_limit_that_makes_no_sense_ends_the_job_as_dead_and_says_what_to_write() {
    let (queue, _clock) = queue().await;
    let worker = queue.worker().tasks([task_wrong()]).start().await.expect("it starts");
    let job = enqueue_wrong(&queue).await.expect("stored");
    let error = soon("it ends", job.result()).await.expect_err("it is dead").to_string();
    assert!(error.contains("limit mail") && error.contains("2/m"), "{error}");
    assert_eq!(job.status().await.expect("kept").state, State::Dead(DeadReason::Never));
    worker.shutdown().await.expect("it stops");
}

#[flexiq::task(queue = "posts")]
async fn twice(#[context] context: Context, #[state] journal: Journal) -> Result<(), Retry> {
    let one = context.limit("twice").concurrency(1).acquire().await?;
    let two = context.limit("twice").concurrency(1).acquire().await?;
    drop(one);
    journal.note("still held");
    drop(two);
    let _again = context.limit("twice").concurrency(1).acquire().await?;
    journal.note("again");
    Ok(())
}

#[tokio::test]
async fn a_run_has_at_once_what_it_holds_and_what_it_has_given_back() {
    let (queue, _clock) = queue().await;
    let journal = Journal::default();
    let worker =
        queue.worker().tasks([task_twice()]).state(journal.clone()).start().await.expect("it starts");
    let job = enqueue_twice(&queue).await.expect("stored");
    soon("it runs", job.result()).await.expect("it succeeded");
    assert_eq!(journal.lines(), ["still held", "again"]);
    assert_eq!(job.status().await.expect("kept").deferrals, 0);
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn an_answer_that_is_lost_costs_no_permit() {
    let (queue, clock) = queue().await;
    let spy = Spy::on(queue.below());
    let queue = Queue::on(spy.clone());
    let (partner, journal) = (Partner::new(0), Journal::default());
    // However much time passes here, no lease ends.
    let builder = queue.worker().tasks([task_tell()]).lease(Duration::from_secs(24 * 60 * 60));
    let builder = builder.state(partner.clone()).state(journal);
    spy.lose_answer(Verb::Acquire);
    spy.lose_request(Verb::Acquire);
    spy.lose_answer(Verb::GiveBack);
    let worker = builder.start().await.expect("it starts");
    let jobs = queue.enqueue_many((0..5).map(|_| enqueue_tell(&queue, "acme".into()))).await.expect("stored");
    // What failed is tried again after a pause.
    let pass = || clock.advance(Duration::from_millis(10));
    let are_used = async || {
        pass();
        partner.calls.load(Ordering::SeqCst) == 2
    };
    until("both permits are used", are_used).await;
    partner.may_end.add_permits(5);
    for job in &jobs {
        let has_ended = async || {
            pass();
            job.status().await.expect("stored").state == State::Succeeded
        };
        until("it runs", has_ended).await;
    }
    assert_eq!(partner.most(), 2);
    worker.shutdown().await.expect("it stops");
}
