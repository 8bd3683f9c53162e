//! The experiment: one idle worker with ten slots, reports, then emails; each email's time from its enqueue to the end of
//! its body.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use flexiq::{Context, JobHandle, JobId, Queue, Retry, Task, Worker};
use serde::Serialize;
use tokio::sync::{Notify, Semaphore};

/// Reports that may run at once, where something limits them.
const LIMIT: usize = 3;
const SLOTS: u32 = 10;
const REPORTS: usize = 30;
const EMAILS: usize = 20;

/// How long the jobs take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    report: Duration,
    email: Duration,
    /// After which a report that found no room looks again.
    defer: Duration,
}

impl Load {
    /// The experiment as it was first made.
    pub(crate) const FULL: Self = Self::of(500, 100);
    /// The same in less time.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the test"))]
    pub(crate) const SMALL: Self = Self::of(250, 50);

    const fn of(report_ms: u64, defer_ms: u64) -> Self {
        Self {
            report: Duration::from_millis(report_ms),
            email: Duration::from_millis(10),
            defer: Duration::from_millis(defer_ms),
        }
    }
}

// ANCHOR: reports
/// Takes whatever slots there are.
#[flexiq::task]
async fn report_no_limit(#[state] office: Office) {
    office.render().await;
}

/// Waits for its turn in its slot. Don't.
#[flexiq::task]
async fn report_semaphore_in_body(#[state] office: Office) {
    let _permit = office.printers.acquire().await.expect("it is never closed");
    office.render().await;
}

/// Gives its slot back when there is no room, and looks again a little later.
#[flexiq::task]
async fn report_defer_when_busy(#[state] office: Office) -> Result<(), Retry> {
    let _permit = office.printers.try_acquire().map_err(|_| Retry::after(office.load.defer))?;
    office.render().await;
    Ok(())
}

/// Asks in its body for one of three permits; where there is none, stands in line without a slot.
#[flexiq::task]
async fn report_named_limit(#[state] office: Office, #[context] context: Context) -> Result<(), Retry> {
    let _permit = context.limit("printers").concurrency(3).acquire().await?;
    office.render().await;
    Ok(())
}

/// Has a queue of its own, and that queue a worker of its own with three slots.
#[flexiq::task(queue = "reports")]
async fn report_separate_queues(#[state] office: Office) {
    office.render().await;
}

/// Three at once in each worker.
#[flexiq::task(max_in_flight_per_task = 3)]
async fn report_max_in_flight_per_task(#[state] office: Office) {
    office.render().await;
}

/// Three at once on the whole fleet.
#[flexiq::task(max_concurrent = 3)]
async fn report_max_concurrent(#[state] office: Office) {
    office.render().await;
}
// ANCHOR_END: reports

#[flexiq::task]
async fn email(#[state] office: Office, #[context] context: Context) {
    office.send(context.job_id()).await;
}

/// How the reports are held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    NoLimit,
    SemaphoreInBody,
    DeferWhenBusy,
    NamedLimit,
    SeparateQueues,
    MaxInFlightPerTask,
    MaxConcurrent,
}

impl Variant {
    pub(crate) const ALL: [Self; 7] = [
        Self::NoLimit,
        Self::SemaphoreInBody,
        Self::DeferWhenBusy,
        Self::NamedLimit,
        Self::SeparateQueues,
        Self::MaxInFlightPerTask,
        Self::MaxConcurrent,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NoLimit => "no_limit",
            Self::SemaphoreInBody => "semaphore_in_body",
            Self::DeferWhenBusy => "defer_when_busy",
            Self::NamedLimit => "named_limit",
            Self::SeparateQueues => "separate_queues",
            Self::MaxInFlightPerTask => "max_in_flight_per_task",
            Self::MaxConcurrent => "max_concurrent",
        }
    }

    fn report(self) -> Task {
        match self {
            Self::NoLimit => task_report_no_limit(),
            Self::SemaphoreInBody => task_report_semaphore_in_body(),
            Self::DeferWhenBusy => task_report_defer_when_busy(),
            Self::NamedLimit => task_report_named_limit(),
            Self::SeparateQueues => task_report_separate_queues(),
            Self::MaxInFlightPerTask => task_report_max_in_flight_per_task(),
            Self::MaxConcurrent => task_report_max_concurrent(),
        }
    }

    async fn enqueue_report(self, queue: &Queue) -> flexiq::Result<JobId> {
        let id = |job: JobHandle<()>| job.id();
        match self {
            Self::NoLimit => enqueue_report_no_limit(queue).await.map(id),
            Self::SemaphoreInBody => enqueue_report_semaphore_in_body(queue).await.map(id),
            Self::DeferWhenBusy => enqueue_report_defer_when_busy(queue).await.map(id),
            Self::NamedLimit => enqueue_report_named_limit(queue).await.map(id),
            Self::SeparateQueues => enqueue_report_separate_queues(queue).await.map(id),
            Self::MaxInFlightPerTask => enqueue_report_max_in_flight_per_task(queue).await.map(id),
            Self::MaxConcurrent => enqueue_report_max_concurrent(queue).await.map(id),
        }
    }

    /// One worker with all slots; or one for the reports and one for the emails, which share them out.
    async fn start_workers(self, queue: &Queue, office: &Office) -> flexiq::Result<Vec<Worker>> {
        let worker = |tasks: Vec<Task>, slots| {
            queue.worker().state(office.clone()).tasks(tasks).async_concurrency(slots).start()
        };
        if self == Self::SeparateQueues {
            let reports = LIMIT as u32;
            return Ok(vec![
                worker(vec![self.report()], reports).await?,
                worker(vec![task_email()], SLOTS - reports).await?,
            ]);
        }
        Ok(vec![worker(vec![self.report(), task_email()], SLOTS).await?])
    }
}

/// What one variant came to.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figures {
    pub(crate) variant: &'static str,
    pub(crate) email_median_ms: f64,
    pub(crate) email_max_ms: f64,
    /// From the first enqueue to the end of the last body.
    pub(crate) total_ms: f64,
    /// Reports that were rendering at once.
    pub(crate) peak_reports: usize,
    pub(crate) deferrals: u32,
    pub(crate) failures: u32,
}

/// Runs the experiment once.
pub(crate) async fn run(variant: Variant, url: &str, load: Load) -> flexiq::Result<Figures> {
    let queue = Queue::open(url).await?;
    let office = Office::new(load);
    let workers = variant.start_workers(&queue, &office).await?;
    // Let them find nothing to do.
    tokio::time::sleep(Duration::from_millis(20)).await;

    let begun = Instant::now();
    let (mut reports, mut sent) = (Vec::new(), HashMap::new());
    for _ in 0..REPORTS {
        reports.push(variant.enqueue_report(&queue).await?);
    }
    for _ in 0..EMAILS {
        let enqueued = Instant::now();
        sent.insert(enqueue_email(&queue).await?.id(), enqueued);
    }
    office.wait_until_done().await;
    let total = begun.elapsed();
    for worker in workers {
        worker.shutdown().await?;
    }

    let received = office.received.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut latencies: Vec<f64> =
        received.iter().map(|(job, at)| millis(at.duration_since(sent[job]))).collect();
    latencies.sort_by(f64::total_cmp);
    let (mut deferrals, mut failures) = (0, 0);
    for job in reports.into_iter().chain(sent.into_keys()) {
        let job = queue.status(job).await?;
        deferrals += job.deferrals;
        failures += job.failures;
    }
    Ok(Figures {
        variant: variant.name(),
        email_median_ms: f64::midpoint(latencies[EMAILS / 2 - 1], latencies[EMAILS / 2]),
        email_max_ms: latencies[EMAILS - 1],
        total_ms: millis(total),
        peak_reports: office.peak.load(Ordering::Relaxed),
        deferrals,
        failures,
    })
}

/// To a tenth.
fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 10_000.0).round() / 10.0
}

/// Where the jobs of one run do their work and are counted.
#[derive(Clone, Debug)]
struct Office {
    load: Load,
    printers: Arc<Semaphore>,
    rendering: Arc<AtomicUsize>,
    peak: Arc<AtomicUsize>,
    received: Arc<Mutex<Vec<(JobId, Instant)>>>,
    left: Arc<AtomicUsize>,
    done: Arc<Notify>,
}

impl Office {
    fn new(load: Load) -> Self {
        Self {
            load,
            printers: Arc::new(Semaphore::new(LIMIT)),
            rendering: Arc::default(),
            peak: Arc::default(),
            received: Arc::default(),
            left: Arc::new(AtomicUsize::new(REPORTS + EMAILS)),
            done: Arc::default(),
        }
    }

    async fn render(&self) {
        self.peak.fetch_max(self.rendering.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        tokio::time::sleep(self.load.report).await;
        self.rendering.fetch_sub(1, Ordering::Relaxed);
        self.one_done();
    }

    async fn send(&self, job: JobId) {
        tokio::time::sleep(self.load.email).await;
        self.received.lock().unwrap_or_else(PoisonError::into_inner).push((job, Instant::now()));
        self.one_done();
    }

    fn one_done(&self) {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.done.notify_one();
        }
    }

    /// Waits until every body has ended.
    async fn wait_until_done(&self) {
        self.done.notified().await;
    }
}
