//! One run of one job: decode, call, and bring home exactly one outcome, whatever the body does.
//!
//! The pump starts runs; each sends its outcome back once. Nothing here speaks to the store.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedSender;
use tracing::Instrument;

use super::control::{Control, Stop};
use super::ending::Ending;
use super::leases::{Leases, Started};
use super::notes::Notes;
use super::permits::Permits;
use super::threads::Threads;
use crate::clock::Clock;
use crate::job::Outcome;
use crate::name::Name;
use crate::queue::Queue;
use crate::store::{Claimed, LeaseId};
use crate::task::{Context, Input, Kind, Notebook, RunInfo, Running, States, TaskDefinition, Tells};

/// Between telling a run to stop and dropping it.
pub(super) const LAST_MOMENT: Duration = Duration::from_secs(1);

/// Starts runs, and sends what became of them.
#[derive(Debug)]
pub(super) struct Executor {
    pub(super) runtime: Handle,
    pub(super) threads: Threads,
    pub(super) clock: Clock,
    pub(super) leases: Leases,
    pub(super) permits: Permits,
    pub(super) notes: Notes,
    /// The same, for the tasks' contexts.
    pub(super) tells: Arc<dyn Tells>,
    pub(super) states: States,
    /// The handle for the tasks' contexts.
    pub(super) queue: Queue,
    pub(super) ended: UnboundedSender<Ended>,
}

/// A run that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) lease: LeaseId,
    pub(super) outcome: Outcome,
}

/// A run to be started.
struct Run {
    lease: LeaseId,
    definition: &'static TaskDefinition,
    input: Input,
    timeout: Option<Duration>,
    control: Arc<Control>,
    span: tracing::Span,
}

impl Executor {
    /// Starts a claimed job on the kind of slot that its task needs. Its outcome is sent once. `sent` is when its claim
    /// was sent, by the monotonic clock.
    pub(super) fn start(
        &self,
        claimed: Claimed,
        sent: Duration,
        queue: &Name,
        definition: &'static TaskDefinition,
    ) -> Ending {
        let ending = Ending::new(definition, &claimed);
        let control = Arc::new(Control::default());
        let started = Started {
            control: control.clone(),
            kind: definition.kind,
            task: definition.name,
            is_capped: claimed.is_capped,
            sent,
        };
        self.leases.add(claimed.lease, started);
        let span = tracing::info_span!(
            "flexiq.run",
            job.id = %claimed.lease.job,
            job.task = definition.name,
            job.queue = %queue,
            job.run = claimed.lease.run,
        );
        let info = RunInfo {
            job: claimed.lease.job,
            task: definition.name.into(),
            queue: queue.clone(),
            run: claimed.lease.run,
            failures: claimed.failures,
            deferrals: claimed.deferrals,
            losses: claimed.losses,
            max_retries: ending.max_retries(),
            claimed_at: claimed.claimed_at,
            began: self.clock.elapsed(),
            notebook: Notebook::default(),
        };
        let grants = self.permits.of_run(claimed.lease, queue, claimed.ready_at);
        let input = Input {
            payload: claimed.payload.bytes,
            states: self.states.clone(),
            context: Context::new(
                info,
                control.token(),
                self.runtime.clone(),
                grants,
                self.tells.clone(),
                self.queue.clone(),
            ),
            max_result: self.queue.max_result(),
        };
        let run = Run { lease: claimed.lease, definition, input, timeout: ending.timeout(), control, span };
        match definition.kind {
            Kind::Async => self.start_async(run),
            Kind::Plain => self.start_plain(run),
        }
        ending
    }

    fn start_async(&self, run: Run) {
        let (clock, ended) = (self.clock.clone(), self.ended.clone());
        let Run { lease, definition, input, timeout, control, span } = run;
        let body = async move {
            let outcome = match prepare(definition, input) {
                Ok(Running::Async(body)) => drive(body, &control, timeout, &clock).await,
                Ok(Running::Plain(call)) => settle(caught(call), control.reason()),
                Ok(Running::Refused(outcome)) | Err(outcome) => outcome,
            };
            // The pump outlives its runs, but for a runtime that is being dropped.
            let _ = ended.send(Ended { lease, outcome });
        };
        self.runtime.spawn(body.instrument(span));
    }

    fn start_plain(&self, run: Run) {
        let (clock, ended) = (self.clock.clone(), self.ended.clone());
        let Run { lease, definition, input, timeout, control, span } = run;
        let begun = clock.elapsed();
        let alarm = timeout.map(|limit| {
            let (clock, control) = (clock.clone(), control.clone());
            self.runtime.spawn(async move {
                clock.reach(begun.saturating_add(limit)).await;
                control.stop(Stop::TimedOut);
            })
        });
        let call = Box::new(move || {
            let outcome = span.in_scope(|| match prepare(definition, input) {
                Ok(Running::Plain(call)) => settle(caught(call), control.reason()),
                Ok(Running::Async(_)) => unreachable!("the macro gives a plain function a plain run"),
                Ok(Running::Refused(outcome)) | Err(outcome) => outcome,
            });
            if let Some(alarm) = alarm {
                alarm.abort();
            }
            let outcome = match timeout {
                Some(limit) if clock.elapsed().saturating_sub(begun) >= limit => Outcome::TimedOut(limit),
                _ => outcome,
            };
            let _ = ended.send(Ended { lease, outcome });
        });
        if self.threads.run(call).is_err() {
            tracing::warn!(
                job.task = definition.name,
                "the system gives no thread: the job goes back to its queue"
            );
            let _ = self.ended.send(Ended { lease, outcome: Outcome::Released });
        }
    }
}

/// Decodes the payload; a user's `Deserialize` may panic.
fn prepare(definition: &'static TaskDefinition, input: Input) -> Result<Running, Outcome> {
    catch_unwind(AssertUnwindSafe(|| (definition.run)(input))).map_err(panicked)
}

fn caught(call: impl FnOnce() -> Outcome) -> Outcome {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(panicked)
}

type Body = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// Polls a body until it returns, its time is over, or it is told to stop and its last moment has passed.
async fn drive(mut body: Body, control: &Control, timeout: Option<Duration>, clock: &Clock) -> Outcome {
    let end = timeout.map(|timeout| clock.elapsed().saturating_add(timeout));
    let told = tokio::select! {
        biased;
        outcome = guarded(&mut body) => return settle(outcome, control.reason()),
        told = control.stopped() => told,
        () = reach(clock, end) => Stop::TimedOut,
    };
    let outcome = match told {
        Stop::TimedOut => {
            control.stop(Stop::TimedOut);
            Outcome::TimedOut(timeout.unwrap_or_default())
        }
        // Another worker may be running the job: stop now.
        Stop::LeaseLost => Outcome::Released,
        // A fence may say sooner: its clock began with the lease. A lease that is renewed after all changes nothing any
        // more, for the task has been told to stop.
        Stop::Cancelled | Stop::Shutdown | Stop::Fenced => tokio::select! {
            biased;
            outcome = guarded(&mut body) => return settle(outcome, Some(told)),
            () = clock.sleep(LAST_MOMENT) => settle(Outcome::Released, Some(told)),
            () = control.over() => settle(Outcome::Released, Some(told)),
        },
    };
    dropped(body);
    outcome
}

async fn reach(clock: &Clock, end: Option<Duration>) {
    match end {
        Some(end) => clock.reach(end).await,
        None => std::future::pending().await,
    }
}

/// Polls a body, and turns its panic into an outcome.
async fn guarded(body: &mut Body) -> Outcome {
    poll_fn(|context| {
        catch_unwind(AssertUnwindSafe(|| body.as_mut().poll(context)))
            .unwrap_or_else(|panic| std::task::Poll::Ready(panicked(panic)))
    })
    .await
}

/// Drops a body; what it owns may panic in doing so, which is told but changes nothing.
fn dropped(body: Body) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(body))) {
        tracing::warn!(panic = message(&*panic), "a run panicked while it was dropped");
    }
}

/// What an outcome means after the run was told to stop.
///
/// A success is one, whatever came. A cancelled job does not run again. An error of a run that was interrupted by the
/// shutdown or by its lease is no fault of its job.
fn settle(outcome: Outcome, told: Option<Stop>) -> Outcome {
    match (told, outcome) {
        (_, success @ Outcome::Succeeded(_)) => success,
        (Some(Stop::Cancelled), _) => Outcome::Cancelled,
        (
            Some(Stop::Shutdown | Stop::LeaseLost | Stop::Fenced),
            Outcome::Failed { .. } | Outcome::Panicked { .. } | Outcome::TimedOut(_),
        ) => Outcome::Released,
        (_, outcome) => outcome,
    }
}

fn panicked(panic: Box<dyn Any + Send>) -> Outcome {
    let error = message(&*panic).to_owned();
    // What was thrown may panic in its own drop.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(panic)));
    Outcome::Panicked { error }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a value that is no text")
}
