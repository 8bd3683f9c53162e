//! Looking through jobs: the builder that `Queue::jobs` returns, and the pages that it answers.

use std::future::IntoFuture;

use super::cursor::Cursor;
use super::{Answer, Queue, limits};
use crate::error::{Error, Result};
use crate::job::{Job, State};
use crate::name::Name;
use crate::policy;
use crate::store::{Filter, MOST_LISTED, Reached, Store, state_code};
use crate::task::Registry;

/// Pages of the store that one page of the user is made of at most: each looks at a thousand jobs.
const MOST_PAGES: usize = 20;

/// Jobs that are listed when it is awaited, filtered or not.
#[derive(Clone, Debug)]
#[must_use = "jobs are listed when it is awaited, or `.into_future().blocking()` is called"]
pub struct Jobs {
    handle: Queue,
    queue: Option<String>,
    task: Option<String>,
    state: Option<State>,
    after: Option<Cursor>,
    limit: usize,
}

/// A part of a list of jobs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JobPage {
    /// The jobs.
    pub jobs: Vec<Job>,
    /// Where the next page begins. `None` at the end of the list.
    pub next: Option<Cursor>,
}

impl Queue {
    /// Lists jobs, by pages that cost the same however many jobs there are.
    ///
    /// The order is one that the store has anyway: queue by queue in the order of their names; in each, scheduled jobs by due
    /// time, then ready ones by task, partition, priority and age, running ones by the end of their lease, and succeeded, dead,
    /// cancelled and expired ones, in each of which those come first that are kept longest (of all but the succeeded ones: the
    /// newest ends). A page looks at 20,000 jobs at most, so that with a filter which few jobs pass it may be short, or empty, and
    /// still have a [`next`](JobPage::next).
    ///
    /// A list is of many moments: a job that moves on meanwhile may be met twice, and one that is put back, by a retry for
    /// one, may be missed.
    ///
    /// ```
    /// # async fn example(queue: flexiq::Queue) -> flexiq::Result<()> {
    /// use flexiq::{DeadReason, State};
    ///
    /// let dead = queue.jobs().queue("emails").state(State::Dead(DeadReason::Failures)).limit(10).await?;
    /// for job in &dead.jobs {
    ///     println!("{} {:?}", job.id, job.last_error);
    /// }
    /// if let Some(next) = dead.next {
    ///     let more = queue.jobs().queue("emails").state(State::Dead(DeadReason::Failures)).after(next).await?;
    ///     println!("and {} more", more.jobs.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn jobs(&self) -> Jobs {
        Jobs { handle: self.clone(), queue: None, task: None, state: None, after: None, limit: 100 }
    }
}

impl Jobs {
    /// Lists jobs of this queue alone.
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.queue = Some(queue.into());
        self
    }

    /// Lists jobs of this task alone.
    pub fn task(mut self, task: impl Into<String>) -> Self {
        self.task = Some(task.into());
        self
    }

    /// Lists jobs in this state alone, whatever the reason.
    pub fn state(mut self, state: State) -> Self {
        self.state = Some(state);
        self
    }

    /// Goes on behind a page of the same list.
    pub fn after(mut self, page: Cursor) -> Self {
        self.after = Some(page);
        self
    }

    /// Lists at most `jobs` jobs, from 1 to 1,000. Defaults to 100.
    pub fn limit(mut self, jobs: usize) -> Self {
        self.limit = jobs;
        self
    }

    async fn list(self) -> Result<JobPage> {
        if !(1..=MOST_LISTED).contains(&self.limit) {
            return Err(Error::Invalid {
                what: "limit of a list".into(),
                given: self.limit.to_string(),
                accepted: format!("1 to {MOST_LISTED}; the next page begins after what this one answers"),
            });
        }
        let store = &**self.handle.store();
        let queue = match &self.queue {
            Some(queue) => Some(limits::known_queue(store, queue).await?),
            None => None,
        };
        let task = match &self.task {
            Some(task) => Some(known_task(store, task).await?),
            None => None,
        };
        let after = self.after.map(|cursor| cursor.0);
        let mut filter = Filter { queue, task, state: self.state, after, limit: self.limit };
        check_cursor(&filter)?;
        let mut jobs = Vec::new();
        for _ in 0..MOST_PAGES {
            filter.limit = self.limit - jobs.len();
            let page = store.list(filter.clone()).await?;
            jobs.extend(page.jobs);
            filter.after = page.reached;
            if filter.after.is_none() || jobs.len() >= self.limit {
                break;
            }
        }
        Ok(JobPage { jobs, next: filter.after.map(Cursor) })
    }
}

impl IntoFuture for Jobs {
    type Output = Result<JobPage>;
    type IntoFuture = Answer<JobPage>;

    fn into_future(self) -> Self::IntoFuture {
        Answer::new(self.list())
    }
}

/// Refuses a cursor that a list with other filters has answered.
fn check_cursor(filter: &Filter) -> Result<()> {
    let Some(Reached { queue, state, last }) = &filter.after else { return Ok(()) };
    let is_other_queue = filter.queue.as_ref().is_some_and(|wanted| wanted != queue);
    let is_other_state = filter.state.is_some_and(|wanted| last.is_some() && state_code(wanted) != *state);
    let of_task = last.as_ref().map_or("", |last| last.task.as_str());
    let is_other_task =
        filter.task.as_ref().is_some_and(|wanted| !of_task.is_empty() && **wanted != *of_task);
    if is_other_queue || is_other_state || is_other_task {
        return Err(Error::Invalid {
            what: "cursor".into(),
            given: "that of a list with other filters".into(),
            accepted: "the one that the page before answered, with the same queue, task and state".into(),
        });
    }
    Ok(())
}

/// A task that is linked here, declared, or of which the store holds jobs.
async fn known_task(store: &dyn Store, task: &str) -> Result<Name> {
    let name = Name::new("task", task)?;
    let mut known: Vec<String> = Registry::names().map(str::to_owned).collect();
    known.extend(store.declarations().await?.into_iter().map(|(name, _)| name.to_string()));
    known.extend(store.counts().await?.tasks.into_iter().map(|counts| counts.task));
    if known.iter().any(|known| known == task) {
        return Ok(name);
    }
    let nearest = policy::nearest(task, known.iter().map(String::as_str)).map(str::to_owned);
    Err(Error::Unknown { what: "task", name: task.into(), nearest })
}
