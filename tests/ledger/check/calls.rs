//! A producer was told the truth.

use std::collections::HashMap;

use flexiq::JobId;

use super::Violation;
use crate::ledger::{Answer, Call};

/// What was stored is there once, what was refused is not there, what is unknown is there once or not at all; and a batch
/// is there as a whole. `there` is every job that the store has ever taken in, as often as it did. Answers how many
/// unknown calls are there.
///
/// # Errors
///
/// [`Violation::Misstored`] and [`Violation::BatchTorn`].
pub fn calls(calls: &[Call], there: impl IntoIterator<Item = JobId>) -> Result<usize, Violation> {
    let mut times: HashMap<JobId, usize> = HashMap::new();
    for job in there {
        *times.entry(job).or_default() += 1;
    }
    let mut unknown_there = 0;
    for call in calls {
        let mut found = 0;
        for job in &call.jobs {
            let times = times.get(job).copied().unwrap_or(0);
            let (is_true, told) = match call.answer {
                Answer::Stored => (times == 1, "that it is stored"),
                Answer::Refused => (times == 0, "that it is not"),
                Answer::Unknown => (times <= 1, "nothing"),
            };
            if !is_true {
                return Err(Violation::Misstored { job: *job, times, told });
            }
            found += times;
        }
        if found != 0 && found != call.jobs.len() {
            return Err(Violation::BatchTorn { there: found, jobs: call.jobs.len() });
        }
        unknown_there += usize::from(call.answer == Answer::Unknown && found > 0);
    }
    Ok(unknown_there)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(jobs: &[JobId], answer: Answer) -> Call {
        Call { jobs: jobs.to_vec(), answer }
    }

    #[test]
    fn calls_that_were_answered_truly_pass() {
        let ids: Vec<JobId> = (0..5).map(|_| JobId::new()).collect();
        let told = [
            call(&ids[..2], Answer::Stored),
            call(&ids[2..3], Answer::Refused),
            call(&ids[3..4], Answer::Unknown),
            call(&ids[4..], Answer::Unknown),
        ];
        assert_eq!(calls(&told, [ids[0], ids[1], ids[4]]), Ok(1));
    }

    #[test]
    fn a_stored_job_that_is_not_there_is_found() {
        let job = JobId::new();
        let found = calls(&[call(&[job], Answer::Stored)], []);
        assert_eq!(found, Err(Violation::Misstored { job, times: 0, told: "that it is stored" }));
    }

    #[test]
    fn an_unknown_job_that_is_there_twice_is_found() {
        let job = JobId::new();
        let found = calls(&[call(&[job], Answer::Unknown)], [job, job]);
        assert_eq!(found, Err(Violation::Misstored { job, times: 2, told: "nothing" }));
    }

    #[test]
    fn a_refused_job_that_is_there_is_found() {
        let job = JobId::new();
        let found = calls(&[call(&[job], Answer::Refused)], [job]);
        assert_eq!(found, Err(Violation::Misstored { job, times: 1, told: "that it is not" }));
    }

    #[test]
    fn half_a_batch_is_found() {
        let ids = [JobId::new(), JobId::new()];
        let found = calls(&[call(&ids, Answer::Unknown)], [ids[0]]);
        assert_eq!(found, Err(Violation::BatchTorn { there: 1, jobs: 2 }));
    }
}
