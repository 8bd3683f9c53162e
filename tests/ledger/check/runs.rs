//! Run numbers grow, and what a kill cut short is given back in time.

use std::collections::HashMap;

use flexiq::JobId;

use super::{Span, Violation};
use crate::ledger::{Body, Fate};

/// The lease of one run, as the store kept it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The job.
    pub job: JobId,
    /// Its task.
    pub task: String,
    /// The run.
    pub run: u32,
    /// The store's moment of the claim.
    pub claimed_ms: i64,
    /// The moment at which it was freed, if it was.
    pub freed_ms: Option<i64>,
    /// From the claim until it was freed, in the order of all that the store did.
    pub held: Span,
}

/// The run numbers of each job grow with each start. Takes the runs in the order of their starts; answers how many.
///
/// # Errors
///
/// [`Violation::RunNotGrown`].
pub fn runs_grow(starts: impl IntoIterator<Item = (JobId, u32)>) -> Result<usize, Violation> {
    let mut newest: HashMap<JobId, u32> = HashMap::new();
    let mut count = 0;
    for (job, run) in starts {
        let before = newest.insert(job, run).unwrap_or(0);
        if run <= before {
            return Err(Violation::RunNotGrown { job, run, before });
        }
        count += 1;
    }
    Ok(count)
}

/// The lease of every killed body was freed within `limit_ms` of the kill. Answers how long each took.
///
/// # Errors
///
/// [`Violation::NeverRestarted`] and [`Violation::RestartedLate`].
pub fn restarts<'a>(
    bodies: impl IntoIterator<Item = &'a Body>,
    leases: &[Lease],
    limit_ms: i64,
) -> Result<Vec<i64>, Violation> {
    let freed: HashMap<(JobId, u32), Option<i64>> =
        leases.iter().map(|lease| ((lease.job, lease.run), lease.freed_ms)).collect();
    let mut took = Vec::new();
    for body in bodies {
        let Fate::Killed(at) = body.fate else { continue };
        let (job, run) = (body.job, body.run);
        match freed.get(&(job, run)).copied().flatten() {
            None => return Err(Violation::NeverRestarted { job, run, at }),
            Some(freed) if freed - at > limit_ms => {
                return Err(Violation::RestartedLate { job, run, after_ms: freed - at });
            }
            Some(freed) => took.push(freed - at),
        }
    }
    Ok(took)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn killed(job: JobId, at: i64) -> Body {
        Body { process: "p".into(), task: "t".into(), job, run: 1, start: 0, fate: Fate::Killed(at) }
    }

    fn lease(job: JobId, freed_ms: Option<i64>) -> Lease {
        Lease { job, task: "t".into(), run: 1, claimed_ms: 0, freed_ms, held: Span { from: 0, to: 1 } }
    }

    #[test]
    fn numbers_that_grow_pass() {
        let (first, second) = (JobId::new(), JobId::new());
        assert_eq!(runs_grow([(first, 1), (second, 1), (first, 2), (first, 4)]), Ok(4));
    }

    #[test]
    fn the_same_number_again_is_found() {
        let job = JobId::new();
        let found = runs_grow([(job, 1), (job, 2), (job, 2)]);
        assert_eq!(found, Err(Violation::RunNotGrown { job, run: 2, before: 2 }));
    }

    #[test]
    fn a_killed_run_given_back_in_time_passes() {
        let job = JobId::new();
        assert_eq!(restarts(&[killed(job, 100)], &[lease(job, Some(2_050))], 2_500), Ok(vec![1_950]));
    }

    #[test]
    fn a_killed_run_given_back_late_or_never_is_found() {
        let job = JobId::new();
        let late = restarts(&[killed(job, 100)], &[lease(job, Some(2_700))], 2_500);
        assert_eq!(late, Err(Violation::RestartedLate { job, run: 1, after_ms: 2_600 }));
        let never = restarts(&[killed(job, 100)], &[lease(job, None)], 2_500);
        assert_eq!(never, Err(Violation::NeverRestarted { job, run: 1, at: 100 }));
    }
}
