//! prometheus: the figures of a whole store as a page for Prometheus, in its text format.
//!
//! All are gauges: what workers count goes with them, so their counters are told by each process itself, by the feature
//! `metrics`. No label grows with jobs, partitions or workers.
//! The format: <https://prometheus.io/docs/instrumenting/exposition_formats/>, version 0.0.4.

use std::fmt::{self, Write};
use std::time::SystemTime;

use super::{Answer, Queue, Stats, TaskStats};

impl Queue {
    /// The figures of the whole store in the text format of Prometheus, for a page of your own web server: answer it with
    /// the content type `text/plain; version=0.0.4`.
    ///
    /// It is one look, as [`stats`](Self::stats) is; any one process of the fleet may show it, also one without a worker.
    ///
    /// | gauge | is |
    /// |---|---|
    /// | `flexiq_jobs{queue,task,state}` | jobs |
    /// | `flexiq_oldest_ready_seconds{queue,task}` | how long the oldest ready job is ready; 0 where there is none |
    /// | `flexiq_oldest_run_seconds{queue,task}` | how long the oldest run runs; 0 where there is none |
    /// | `flexiq_stranded{queue,task}` | pending jobs that no live worker takes |
    /// | `flexiq_startable{queue}` | ready jobs that no shut gate keeps: scale on this |
    /// | `flexiq_pending{queue}`, `flexiq_max_pending{queue}` | pending jobs; how many there may be, where that is limited |
    /// | `flexiq_paused{queue}` | 1 if the queue is paused, else 0 |
    /// | `flexiq_workers` | live workers |
    /// | `flexiq_fleet_slots{kind,state}` | slots of all live workers: `async` or `plain`, `free` or `busy` |
    /// | `flexiq_drift` | limits that are not what workers declare |
    ///
    /// # Errors
    ///
    /// What the store says if it cannot be asked.
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> flexiq::Result<()> {
    /// let queue = flexiq::Queue::open("sqlite::memory:").await?;
    /// assert!(queue.prometheus().await?.contains("\nflexiq_workers 0\n"));
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "metrics")]
    pub fn prometheus(&self) -> Answer<String> {
        let stats = self.stats();
        Answer::new(async move { Ok(page(&stats.await?)) })
    }
}

fn page(stats: &Stats) -> String {
    let mut page = Page::default();
    of_tasks(&mut page, stats);
    of_queues(&mut page, stats);
    of_workers(&mut page, stats);
    page.text
}

fn of_tasks(page: &mut Page, stats: &Stats) {
    let Stats { at, tasks, .. } = stats;
    page.gauge("flexiq_jobs", "Jobs by queue, task and state.");
    for task in tasks {
        for (state, jobs) in by_state(task) {
            page.value(&[("queue", &task.queue), ("task", &task.task), ("state", state)], jobs);
        }
    }
    page.gauge(
        "flexiq_oldest_ready_seconds",
        "How long the oldest ready job is ready, 0 where there is none.",
    );
    for task in tasks {
        page.value(&labels(task), age(task.oldest_ready_at, *at));
    }
    page.gauge("flexiq_oldest_run_seconds", "How long the oldest run runs, 0 where there is none.");
    for task in tasks {
        page.value(&labels(task), age(task.oldest_run_at, *at));
    }
    page.gauge("flexiq_stranded", "Pending jobs whose task no live worker links and serves.");
    for task in tasks {
        page.value(&labels(task), if task.is_stranded { task.counts.pending() } else { 0 });
    }
}

fn of_queues(page: &mut Page, stats: &Stats) {
    let queues = &stats.queues;
    page.gauge(
        "flexiq_startable",
        "Ready jobs that no shut gate keeps waiting: what more workers could start.",
    );
    for queue in queues {
        page.value(&[("queue", &queue.queue)], queue.startable);
    }
    page.gauge("flexiq_pending", "Jobs that are scheduled or ready.");
    for queue in queues {
        page.value(&[("queue", &queue.queue)], queue.pending);
    }
    page.gauge("flexiq_max_pending", "How many jobs may be pending, where that is limited.");
    for (queue, most) in queues.iter().filter_map(|queue| Some((queue, queue.max_pending?))) {
        page.value(&[("queue", &queue.queue)], most);
    }
    page.gauge("flexiq_paused", "Whether the queue is paused.");
    for queue in queues {
        page.value(&[("queue", &queue.queue)], u8::from(queue.is_paused));
    }
}

fn of_workers(page: &mut Page, stats: &Stats) {
    page.gauge("flexiq_workers", "Live workers.");
    page.value(&[], stats.workers.len());
    page.gauge("flexiq_fleet_slots", "Slots of all live workers by kind and state, as of their last beats.");
    for kind in ["async", "plain"] {
        let (mut free, mut busy) = (0, 0);
        for worker in &stats.workers {
            let slots = if kind == "async" { worker.async_slots } else { worker.plain_slots };
            free += u64::from(slots.total.saturating_sub(slots.busy));
            busy += u64::from(slots.busy);
        }
        page.value(&[("kind", kind), ("state", "free")], free);
        page.value(&[("kind", kind), ("state", "busy")], busy);
    }
    page.gauge(
        "flexiq_drift",
        "Limits that are not what the youngest live worker declares, and outdated copies.",
    );
    page.value(&[], stats.drift);
}

fn labels(task: &TaskStats) -> [(&'static str, &str); 2] {
    [("queue", &task.queue), ("task", &task.task)]
}

fn by_state(task: &TaskStats) -> [(&'static str, u64); 7] {
    let counts = &task.counts;
    [
        ("scheduled", counts.scheduled),
        ("ready", counts.ready),
        ("running", counts.running),
        ("succeeded", counts.succeeded),
        ("dead", counts.dead),
        ("cancelled", counts.cancelled),
        ("expired", counts.expired),
    ]
}

/// Seconds since a moment, in milliseconds; 0 where there is none, or it is still to come.
fn age(since: Option<SystemTime>, at: SystemTime) -> f64 {
    since.and_then(|since| at.duration_since(since).ok()).unwrap_or_default().as_secs_f64()
}

/// A page that is being written: each figure with what it is, then its values.
#[derive(Default)]
struct Page {
    text: String,
    figure: &'static str,
}

impl Page {
    /// Begins a figure, whose values follow.
    fn gauge(&mut self, name: &'static str, help: &'static str) {
        self.figure = name;
        self.write(format_args!("# HELP {name} {help}\n# TYPE {name} gauge\n"));
    }

    fn value(&mut self, labels: &[(&str, &str)], value: impl fmt::Display) {
        self.text.push_str(self.figure);
        for (index, (label, text)) in labels.iter().enumerate() {
            let before = if index == 0 { '{' } else { ',' };
            self.write(format_args!("{before}{label}=\"{}\"", Escaped(text)));
        }
        let after = if labels.is_empty() { "" } else { "}" };
        self.write(format_args!("{after} {value}\n"));
    }

    fn write(&mut self, text: fmt::Arguments<'_>) {
        self.text.write_fmt(text).expect("a text takes all");
    }
}

/// The value of a label, where `\`, `"` and the end of a line are escaped.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|letter| match letter {
            '\\' => f.write_str("\\\\"),
            '"' => f.write_str("\\\""),
            '\n' => f.write_str("\\n"),
            other => f.write_char(other),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_told_what_it_is_and_its_values_are_labelled() {
        let mut page = Page::default();
        page.gauge("flexiq_jobs", "Jobs.");
        page.value(&[("queue", "a\\b\"c\nd"), ("state", "ready")], 7);
        page.value(&[], 0.5);
        assert_eq!(
            page.text,
            "# HELP flexiq_jobs Jobs.\n# TYPE flexiq_jobs gauge\n\
             flexiq_jobs{queue=\"a\\\\b\\\"c\\nd\",state=\"ready\"} 7\nflexiq_jobs 0.5\n"
        );
    }

    #[test]
    fn what_is_not_there_or_still_to_come_has_no_age() {
        let at = SystemTime::UNIX_EPOCH + std::time::Duration::from_millis(2_500);
        assert_eq!(age(Some(SystemTime::UNIX_EPOCH), at), 2.5);
        assert_eq!((age(None, at), age(Some(at), SystemTime::UNIX_EPOCH)), (0.0, 0.0));
    }
}
