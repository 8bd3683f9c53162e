//! What can be written on the command line. Its doc comments are the help.

use std::fmt;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::job::{DeadReason, JobId, ScheduledReason, State};
use crate::policy::notation;
use crate::queue::Cursor;

/// Looks after the jobs of a flexiq store.
#[derive(Debug, Parser)]
#[command(
    name = "flexiq",
    version,
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
#[command(after_help = "Exit codes: 0 done, 1 not done or the store is away, 2 wrong usage.")]
pub(super) struct Cli {
    /// The store, such as sqlite://jobs.db or redis://host; without it, that of FLEXIQ_URL
    #[arg(long, global = true, value_name = "URL")]
    pub(super) url: Option<String>,
    /// Prints JSON for programs; moments are milliseconds since 1970
    #[arg(long, global = true)]
    pub(super) json: bool,
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Shows what waits, runs and died of each task, and what keeps it
    Stats,
    /// Shows the busiest tasks and workers, again and again
    Top {
        /// How often
        #[arg(long, default_value = "1s", value_parser = pause)]
        every: Duration,
    },
    /// Lists jobs, by queue and state
    Jobs(Listed),
    /// Lists dead jobs with their last error, the newest first
    Dead(DeadListed),
    /// Shows all that is known of a job
    Show(Shown),
    /// Says why a job waits, or how a task stands
    Why(Asked),
    /// Lists the tasks that workers have declared, with their parameters
    Tasks,
    /// Lists the queues, and how many jobs each has in which state
    Queues,
    /// Lists the workers that are alive, with their slots and what they have run
    Workers,
    /// Lists the limits and pauses that hold, or changes a limit
    Limits {
        #[command(subcommand)]
        change: Option<LimitChange>,
    },
    /// Starts no more jobs of a queue, a task or a partition
    Pause(Target),
    /// Starts jobs of a queue, a task or a partition again
    Resume(Target),
    /// Enqueues a job of a task by its name, and prints its id
    Enqueue(Call),
    /// Cancels jobs: pending ones end, running ones are told to stop
    Cancel(Which),
    /// Makes dead, cancelled or expired jobs ready again, with fresh budgets
    Retry(Which),
    /// Deletes jobs that have ended
    Delete(Which),
    /// Checks whether all that the store holds goes together
    Doctor {
        /// Repairs what can be repaired; a job is never deleted
        #[arg(long)]
        fix: bool,
    },
    /// Prints the figures of the store as a page for Prometheus
    Metrics,
    /// Prints the completions of a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

#[derive(Debug, Args)]
pub(super) struct Listed {
    /// Of this queue
    #[arg(long)]
    pub(super) queue: Option<String>,
    /// Of this task
    #[arg(long)]
    pub(super) task: Option<String>,
    /// In this state
    #[arg(long)]
    pub(super) state: Option<StateName>,
    #[command(flatten)]
    pub(super) page: PageOf,
}

#[derive(Debug, Args)]
pub(super) struct DeadListed {
    /// Of this queue
    #[arg(long)]
    pub(super) queue: Option<String>,
    /// Of this task
    #[arg(long)]
    pub(super) task: Option<String>,
    #[command(flatten)]
    pub(super) page: PageOf,
}

#[derive(Debug, Args)]
pub(super) struct PageOf {
    /// At most so many jobs
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub(super) limit: u16,
    /// Goes on where a page has ended, which printed this cursor
    #[arg(long, value_name = "CURSOR")]
    pub(super) after: Option<Cursor>,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("asked").required(true))]
pub(super) struct Asked {
    /// The job
    #[arg(group = "asked")]
    pub(super) id: Option<JobId>,
    /// The task: its limits and who declares them, what keeps it, and who takes its jobs
    #[arg(long, group = "asked")]
    pub(super) task: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Shown {
    /// The job
    pub(super) id: JobId,
    /// Shows the arguments, too, without the secrets
    #[arg(long)]
    pub(super) payload: bool,
    /// Shows the arguments also where no worker has declared the task, so that nobody knows what is secret
    #[arg(long, requires = "payload")]
    pub(super) undeclared: bool,
}

/// A queue, a task or a partition.
#[derive(Debug, Args)]
pub(super) struct Target {
    /// The queue
    #[arg(long, conflicts_with = "task", required_unless_present = "task")]
    pub(super) queue: Option<String>,
    /// The task
    #[arg(long)]
    pub(super) task: Option<String>,
    /// One partition of the task
    #[arg(long, requires = "task")]
    pub(super) partition: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(super) enum LimitChange {
    /// Sets limits above what is declared
    #[command(group = clap::ArgGroup::new("limits").required(true).multiple(true))]
    Set {
        #[command(flatten)]
        target: Target,
        /// Jobs that run at once, on the whole fleet
        #[arg(long, group = "limits", value_name = "JOBS", value_parser = clap::value_parser!(u32).range(1..))]
        max_concurrent: Option<u32>,
        /// Starts per period, such as 100/m
        #[arg(long, group = "limits", value_parser = rate)]
        rate: Option<String>,
        /// Jobs of a queue that are pending at once
        #[arg(long, group = "limits", value_name = "JOBS", value_parser = clap::value_parser!(u64).range(1..))]
        max_pending: Option<u64>,
    },
    /// Returns limits to what is declared
    #[command(group = clap::ArgGroup::new("limits").required(true).multiple(true))]
    Clear {
        #[command(flatten)]
        target: Target,
        /// The number of jobs that run at once
        #[arg(long, group = "limits")]
        max_concurrent: bool,
        /// The rate
        #[arg(long, group = "limits")]
        rate: bool,
        /// The number of pending jobs of a queue
        #[arg(long, group = "limits")]
        max_pending: bool,
    },
}

#[derive(Debug, Args)]
pub(super) struct Call {
    /// The task
    pub(super) task: String,
    /// Its arguments as a JSON object keyed by parameter; - reads it from the standard input
    #[arg(default_value = "{}", value_name = "JSON")]
    pub(super) arguments: String,
    /// Delays the job, such as 90s or 1h30m
    #[arg(long, value_parser = notation::parse_duration)]
    pub(super) delay: Option<Duration>,
    /// Higher first, from -100 to 100
    #[arg(long, allow_hyphen_values = true, value_parser = clap::value_parser!(i8).range(-100..=100))]
    pub(super) priority: Option<i8>,
    /// Another queue than the task's home, if it has any_queue
    #[arg(long)]
    pub(super) queue: Option<String>,
    /// The id, so that sending it again stores nothing twice
    #[arg(long)]
    pub(super) id: Option<JobId>,
    /// The partition, if the task has partition_by
    #[arg(long)]
    pub(super) partition: Option<String>,
    /// Stores no second job of the task with this key; needed if the task has unique_by
    #[arg(long)]
    pub(super) unique_key: Option<String>,
    /// The job expires unless it starts within this of its due time
    #[arg(long, value_parser = notation::parse_duration)]
    pub(super) expires: Option<Duration>,
    /// A longer run is a failure
    #[arg(long, value_parser = notation::parse_duration)]
    pub(super) timeout: Option<Duration>,
    /// Failures that are forgiven
    #[arg(long)]
    pub(super) max_retries: Option<u32>,
    /// How long the job is kept once it has succeeded
    #[arg(long, value_parser = notation::parse_duration)]
    pub(super) result_ttl: Option<Duration>,
    /// Waits so long for room where the queue is full
    #[arg(long, value_parser = notation::parse_duration)]
    pub(super) wait: Option<Duration>,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("which").required(true).multiple(true))]
pub(super) struct Which {
    /// The jobs
    #[arg(group = "which", conflicts_with_all = ["queue", "task", "state", "all"])]
    pub(super) ids: Vec<JobId>,
    /// All of this queue
    #[arg(long, group = "which")]
    pub(super) queue: Option<String>,
    /// All of this task
    #[arg(long, group = "which")]
    pub(super) task: Option<String>,
    /// All in this state
    #[arg(long, group = "which")]
    pub(super) state: Option<StateName>,
    /// All of the store
    #[arg(long, group = "which", conflicts_with_all = ["queue", "task"])]
    pub(super) all: bool,
    /// Does not ask before it works on all of a kind
    #[arg(long)]
    pub(super) yes: bool,
}

/// A state without its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum StateName {
    Scheduled,
    Ready,
    Running,
    Succeeded,
    Dead,
    Cancelled,
    Expired,
}

impl From<StateName> for State {
    // A filter looks at no reason.
    fn from(name: StateName) -> Self {
        match name {
            StateName::Scheduled => Self::Scheduled(ScheduledReason::Delay),
            StateName::Ready => Self::Ready,
            StateName::Running => Self::Running,
            StateName::Succeeded => Self::Succeeded,
            StateName::Dead => Self::Dead(DeadReason::Failures),
            StateName::Cancelled => Self::Cancelled,
            StateName::Expired => Self::Expired,
        }
    }
}

impl fmt::Display for StateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        State::from(*self).fmt(f)
    }
}

fn rate(text: &str) -> Result<String, String> {
    notation::parse_rates(text).map(|_| text.to_owned())
}

/// A pause between two looks at the store.
fn pause(text: &str) -> Result<Duration, String> {
    let pause = notation::parse_duration(text)?;
    if pause < Duration::from_millis(100) { Err("100ms or more".into()) } else { Ok(pause) }
}
