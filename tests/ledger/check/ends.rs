//! Nothing is lost, and nothing finishes twice.

use std::collections::{HashMap, HashSet};

use flexiq::JobId;

use super::{Lease, Violation};

/// A job has ended in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The job.
    pub job: JobId,
    /// Its newest run then.
    pub run: u32,
    /// Where it stands in the order of all that the store did.
    pub at: i64,
}

/// Every stored job has ended. Answers how many.
///
/// # Errors
///
/// [`Violation::Lost`].
pub fn nothing_lost(stored: impl IntoIterator<Item = JobId>, ends: &[End]) -> Result<usize, Violation> {
    let ended: HashSet<JobId> = ends.iter().map(|end| end.job).collect();
    let stored: HashSet<JobId> = stored.into_iter().collect();
    let jobs: Vec<JobId> = stored.difference(&ended).copied().collect();
    if jobs.is_empty() { Ok(stored.len()) } else { Err(Violation::Lost { jobs, stored: stored.len() }) }
}

/// Every job ends once, and is not leased afterwards. Answers how many have ended.
///
/// # Errors
///
/// [`Violation::EndedTwice`] and [`Violation::RunAfterEnd`].
pub fn finished_once(ends: &[End], leases: &[Lease]) -> Result<usize, Violation> {
    let mut ended: HashMap<JobId, End> = HashMap::with_capacity(ends.len());
    for end in ends {
        if ended.insert(end.job, *end).is_some() {
            let times = ends.iter().filter(|other| other.job == end.job).count();
            return Err(Violation::EndedTwice { job: end.job, times });
        }
    }
    for lease in leases {
        if let Some(end) = ended.get(&lease.job)
            && lease.held.from > end.at
        {
            return Err(Violation::RunAfterEnd { job: lease.job, run: lease.run, ended: end.run });
        }
    }
    Ok(ended.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::check::Span;

    fn end(job: JobId, at: i64) -> End {
        End { job, run: 1, at }
    }

    fn lease(job: JobId, run: u32, from: i64, to: i64) -> Lease {
        Lease { job, task: "t".into(), run, claimed_ms: 0, freed_ms: None, held: Span { from, to } }
    }

    #[test]
    fn jobs_that_have_all_ended_once_pass() {
        let (first, second) = (JobId::new(), JobId::new());
        let ends = [end(first, 10), end(second, 20)];
        assert_eq!(nothing_lost([first, second], &ends), Ok(2));
        let leases = [lease(first, 1, 1, 10), lease(second, 1, 2, 5), lease(second, 2, 6, 20)];
        assert_eq!(finished_once(&ends, &leases), Ok(2));
    }

    #[test]
    fn a_lost_job_is_found() {
        let (first, second) = (JobId::new(), JobId::new());
        let found = nothing_lost([first, second], &[end(first, 10)]);
        assert_eq!(found, Err(Violation::Lost { jobs: vec![second], stored: 2 }));
    }

    #[test]
    fn a_job_that_finishes_twice_is_found() {
        let job = JobId::new();
        let found = finished_once(&[end(job, 10), end(job, 20)], &[]);
        assert_eq!(found, Err(Violation::EndedTwice { job, times: 2 }));
    }

    #[test]
    fn a_run_that_starts_after_the_end_is_found() {
        let job = JobId::new();
        let found = finished_once(&[end(job, 10)], &[lease(job, 1, 1, 10), lease(job, 2, 11, 20)]);
        assert_eq!(found, Err(Violation::RunAfterEnd { job, run: 2, ended: 1 }));
    }
}
