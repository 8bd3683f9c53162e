//! doctor: checks what a store holds against itself. The store looks (`store/finding.rs`); here it is asked for, and each
//! finding is put into words.

use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;

use super::{Answer, Queue};
use crate::error::Result;
use crate::store::{Finding, FindingKind, Repair, Store};

impl Queue {
    /// Checks whether everything in the store goes together: that each job stands where its state says, that counters count
    /// what is there, that nothing is left of what is gone. It looks at the whole store, so its time grows with it.
    ///
    /// A store is sound after any crash; what is found was brought about from outside (a restored backup, a failover that
    /// lost writes, a hand that changed tables or keys) or is a mistake of flexiq's own, which we would like to hear of. A
    /// fleet may run meanwhile: what is on its way is not reported. It answers at most 1,000 findings.
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> flexiq::Result<()> {
    /// let queue = flexiq::Queue::open("sqlite::memory:").await?;
    /// for finding in queue.doctor().await? {
    ///     println!("{finding}");
    /// }
    /// let repaired = queue.doctor().fix().await?;
    /// assert!(repaired.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "fsck")]
    pub fn doctor(&self) -> Checkup {
        Checkup { store: self.store().clone(), repair: Repair::Nothing }
    }
}

/// A check of the whole store, to be refined and awaited.
#[must_use = "nothing is checked until it is awaited, or `.blocking()` is called"]
pub struct Checkup {
    store: Arc<dyn Store>,
    repair: Repair,
}

impl Checkup {
    /// Repairs what can be repaired: recounts, puts jobs where their state says, and removes what belongs to nothing. A job
    /// is never deleted. A running job without a lease gets one: whoever runs it renews that, and if nobody does, it is
    /// taken back as a loss.
    pub fn fix(mut self) -> Self {
        self.repair = Repair::All;
        self
    }

    /// Waits for the answer on this thread: for code that is not `async`.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub fn blocking(self) -> Result<Vec<Finding>> {
        self.into_future().blocking()
    }
}

impl IntoFuture for Checkup {
    type Output = Result<Vec<Finding>>;
    type IntoFuture = Answer<Vec<Finding>>;

    fn into_future(self) -> Self::IntoFuture {
        Answer::new(async move { self.store.check(self.repair).await })
    }
}

impl fmt::Debug for Checkup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checkup").field("store", &self.store.place()).field("repair", &self.repair).finish()
    }
}

/// Where it is, what was found, what should be there, what follows, and whether it was repaired.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, queue, task, job, found, expected, is_repaired } = self;
        let mut words = Vec::new();
        words.extend(job.as_ref().map(|job| format!("Job {job}")));
        words.extend(task.as_ref().map(|task| format!("task {task}")));
        words.extend(queue.as_ref().map(|queue| format!("queue {queue}")));
        let place = match words.len() {
            0 => "The store".to_owned(),
            _ => capitalized(&words.join(", ")),
        };
        write!(f, "{place}: {found}, but {expected}. {}. ", kind.meaning())?;
        f.write_str(match is_repaired {
            true => "Repaired.",
            false => "Not repaired.",
        })
    }
}

fn capitalized(text: &str) -> String {
    let (first, rest) = text.split_at(text.len().min(1));
    first.to_uppercase() + rest
}

impl FindingKind {
    /// What follows for whoever uses the store.
    fn meaning(self) -> &'static str {
        match self {
            Self::Count => "What is shown is wrong, and caps, max_pending and retention go by it",
            Self::NoLease => "If nobody runs the job any more, nobody would ever take it back",
            Self::Place => "The job would be forgotten there",
            Self::Orphan => "It takes room, and may be taken for a job",
            Self::Contradiction => "What is shown of the job is not to be trusted",
            Self::Lost => "A run cannot do without it: restore it from a backup, or cancel or delete the job",
            Self::Turn => "What waits in the partition may wait for ever, or out of turn",
            Self::NamedLimit => "Whoever waits for the limit may wait longer than it has to",
            Self::Bell => "What can start may wait until the next heartbeat",
            Self::Limits => "The queue starts jobs by other limits than those that are shown",
            Self::Foreign => "Another program writes here, or a newer flexiq: keep them apart",
            Self::File => "Restore it from a backup",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobId;

    #[test]
    fn a_finding_is_told_with_its_place_what_follows_and_whether_it_was_repaired() {
        let finding =
            Finding::new(FindingKind::Count, "the count of jobs that are ready is 3", "it should be 2");
        assert_eq!(
            finding.clone().in_queue("q").of_task("send").repaired(true).to_string(),
            "Task send, queue q: the count of jobs that are ready is 3, but it should be 2. \
             What is shown is wrong, and caps, max_pending and retention go by it. Repaired."
        );
        let id = JobId::from_bytes([1; 16]);
        assert_eq!(
            Finding::new(FindingKind::NoLease, "it is running without a lease", "each run has one")
                .in_queue("q")
                .of_job(id)
                .to_string(),
            "Job 01010101-0101-0101-0101-010101010101, queue q: it is running without a lease, but each run has \
             one. If nobody runs the job any more, nobody would ever take it back. Not repaired."
        );
        assert!(finding.to_string().starts_with("The store: the count"));
    }
}
