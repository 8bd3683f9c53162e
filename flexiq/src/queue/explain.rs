//! explain: why a job waits. The store looks it up (`store/explanation.rs`), `sentence.rs` puts each cause into words.

use std::fmt;

use super::sentence::Sentence;
use super::{Answer, JobHandle, Queue};
use crate::error::Error;
use crate::job::{JobId, State};
use crate::store::Explanation;

impl Queue {
    /// Says why a job waits: which knob keeps it, with which value, who holds it, and when it may open.
    ///
    /// It is a look at one moment, and costs the same however much waits. The answer is data, and its
    /// [`Display`](fmt::Display) says it in sentences.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownJob`] if there is none of this id.
    ///
    /// ```
    /// use flexiq::{Cause, Queue};
    ///
    /// #[flexiq::task(queue = "videos")]
    /// async fn transcode(file: String) {
    ///     println!("{file}");
    /// }
    ///
    /// #[tokio::main]
    /// async fn main() -> flexiq::Result<()> {
    ///     let queue = Queue::open("sqlite::memory:").await?;
    ///     queue.pause_task("transcode").await?;
    ///     let job = enqueue_transcode(&queue, "cats.mkv".into()).await?;
    ///
    ///     let why = queue.explain(job.id()).await?;
    ///     assert!(matches!(why.causes[..], [Cause::Paused { .. }, Cause::NoWorker { .. }]));
    ///     println!("{why}"); // Task transcode is paused, until resume_task. …
    ///     Ok(())
    /// }
    /// ```
    #[doc(alias = "why")]
    pub fn explain(&self, id: impl Into<JobId>) -> Answer<Explanation> {
        let (store, id) = (self.store().clone(), id.into());
        Answer::new(async move { store.explain(id).await?.ok_or(Error::UnknownJob(id)) })
    }
}

impl<T> JobHandle<T> {
    /// Says why the job waits, as [`Queue::explain`] does.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownJob`] if its retention is over.
    pub fn explain(&self) -> Answer<Explanation> {
        self.queue().explain(self.id())
    }
}

/// A line for the job, and a sentence or two for each cause, a line each.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { job, at, causes } = self;
        write!(f, "Job {} of task {} in queue {} ", job.id, job.task, job.queue)?;
        match job.state {
            State::Scheduled(_) | State::Ready if !causes.is_empty() => {
                write!(f, "is {} and waits:", job.state)?
            }
            State::Ready => f.write_str("is ready, and waits for nothing but its turn and a free slot.")?,
            State::Running => f.write_str("does not wait: it is running.")?,
            state => write!(f, "does not wait: it is {state}.")?,
        }
        for cause in causes {
            write!(f, "\n- {}", Sentence { cause, of: job.into(), at: *at })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::job::{Job, ScheduledReason};
    use crate::name::Name;
    use crate::store::{Cause, Holder, LiveWorker, Origin, Scope, WorkerId};

    fn moment(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(seconds * 1_000)
    }

    fn job(state: State) -> Job {
        Job {
            id: JobId::from_bytes([1; 16]),
            queue: "q".into(),
            task: "send".into(),
            partition: None,
            state,
            priority: 0,
            runs: 0,
            failures: 0,
            deferrals: 0,
            losses: 0,
            last_error: None,
            progress: None,
            cancel_requested: false,
            enqueued_at: moment(0),
            due_at: moment(0),
            expires_at: None,
            started_at: None,
            ended_at: None,
        }
    }

    /// The sentence for one cause, a hundred seconds after the epoch.
    fn sentence(cause: Cause) -> String {
        Sentence { cause: &cause, of: (&job(State::Ready)).into(), at: moment(100) }.to_string()
    }

    fn name(text: &str) -> Name {
        Name::new("test", text).expect("tests use valid names")
    }

    fn task() -> Scope {
        Scope::Task(name("send"))
    }

    #[test]
    fn a_job_is_told_with_a_line_for_each_cause() {
        let causes = vec![
            Cause::Paused { scope: Scope::Queue(name("q")) },
            Cause::Behind { jobs: 1, outranked: true },
        ];
        let explanation = Explanation { job: job(State::Ready), at: moment(0), causes };
        assert_eq!(
            explanation.to_string(),
            "Job 01010101-0101-0101-0101-010101010101 of task send in queue q is ready and waits:\n\
             - Queue q is paused, until resume_queue.\n\
             - 1 job of its task stands before it, by priority."
        );
    }

    #[test]
    fn a_job_that_nothing_keeps_is_told_in_one_line() {
        for (state, words) in [
            (State::Ready, "is ready, and waits for nothing but its turn and a free slot."),
            (State::Running, "does not wait: it is running."),
            (State::Cancelled, "does not wait: it is cancelled."),
        ] {
            let told = Explanation { job: job(state), at: moment(0), causes: vec![] }.to_string();
            assert!(told.ends_with(words) && told.lines().count() == 1, "{told}");
        }
    }

    #[test]
    fn what_opens_by_itself_says_when() {
        let due_at = SystemTime::UNIX_EPOCH + Duration::from_millis(3_700_001);
        assert_eq!(
            sentence(Cause::NotDue { reason: ScheduledReason::Delay, due_at }),
            "It is due in 1h1s: it was enqueued for later."
        );
        assert_eq!(
            sentence(Cause::NotDue { reason: ScheduledReason::Retry, due_at: moment(99) }),
            "It is due now: a run failed, and it is tried again."
        );
        assert_eq!(
            sentence(Cause::Held { scope: task(), until: moment(130) }),
            "Task send is held: a run was told that nothing should start. It opens in 30s, or by resume_task."
        );
        let rates = vec!["10/s".parse().expect("a rate"), "100/m spread".parse().expect("a rate")];
        assert_eq!(
            sentence(Cause::Spent { scope: task(), rates, origin: Origin::Set, opens_at: moment(105) }),
            "Task send has spent its rate: set_task_rate_limit (set at runtime) allows 10/s, 100/m spread. \
             It opens in 5s."
        );
    }

    #[test]
    fn a_full_cap_names_who_holds_it() {
        let holder = Holder {
            job: JobId::from_bytes([2; 16]),
            worker: WorkerId::from_bytes([3; 16]),
            started_at: moment(97),
        };
        let full = |running, holders| {
            let (scope, origin) = (Scope::Partition(name("send"), "a".into()), Origin::Declared);
            sentence(Cause::Full { scope, max_concurrent: 1, origin, running, holders })
        };
        let head = "Partition \"a\" of task send is full: ";
        let knob = "and max_concurrent_per_partition (declared) allows 1. Running: ";
        let named = format!("job {} on worker {} since 3s", holder.job, holder.worker);
        assert_eq!(full(1, vec![holder]), format!("{head}1 job runs {knob}{named}."));
        assert_eq!(full(7, vec![holder; 2]), format!("{head}7 jobs run {knob}{named}, {named}, and 5 more."));
    }

    #[test]
    fn who_is_alive_is_told_with_what_it_lacks() {
        assert_eq!(sentence(Cause::NoWorker { alive: vec![], total: 0 }), "No worker is alive.");
        let live = |label: &str, links_task, serves_queue| LiveWorker {
            worker: WorkerId::from_bytes([3; 16]),
            label: label.into(),
            links_task,
            serves_queue,
        };
        let alive = vec![live("a:1", true, false), live("b:2", false, true), live("c:3", false, false)];
        assert_eq!(
            sentence(Cause::NoWorker { alive, total: 5 }),
            "No live worker both links task send and serves queue q. Alive: a:1 (does not serve the queue), \
             b:2 (does not link the task), c:3 (does neither), and 2 more."
        );
    }

    #[test]
    fn a_count_at_its_bound_says_so() {
        assert_eq!(
            sentence(Cause::Behind { jobs: 1_000, outranked: false }),
            "1000 or more jobs of its task stand before it, by age."
        );
    }
}
