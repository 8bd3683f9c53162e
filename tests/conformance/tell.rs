//! tell: progress and log of running jobs, who may write them, and what is kept of them.

use flexiq::internals::{
    Claimed, Finish, LeaseId, Line, MOST_LINES, Notes, Tell, Transition, Value, WorkerId,
};
use flexiq::{JobId, Progress, State, Story};

use crate::harness::*;

pub(crate) async fn claimed_by(bench: &Bench, worker: WorkerId) -> Claimed {
    bench.enqueue(job("send")).await;
    bench.claim(worker, &["send"], 1).await.remove(0)
}

fn progress(done: u64, message: &str) -> Progress {
    Progress::told(done, Some(10), message, START + secs(done))
}

fn line(number: u32, message: impl Into<String>) -> Line {
    Line { number, at: START + secs(number.into()), message: message.into() }
}

/// A first line, and no progress.
pub(crate) fn one_line() -> Notes {
    Notes { progress: None, lines: vec![line(1, "begun")] }
}

pub(crate) async fn tell(bench: &Bench, worker: WorkerId, lease: LeaseId, notes: Notes) {
    let tell = Tell { worker, queue: name("q"), runs: vec![(lease, notes)] };
    bench.store.tell(tell).await.expect("the store answers");
}

pub(crate) async fn story(bench: &Bench, id: JobId) -> Story {
    bench.store.story(id).await.expect("the store answers").expect("the job is there")
}

/// The log of a job: of each line the run and what it says.
async fn log(bench: &Bench, id: JobId) -> Vec<(u32, String)> {
    story(bench, id).await.log.into_iter().map(|line| (line.run, line.message)).collect()
}

for_every_store! {
    async fn the_newest_progress_is_shown_with_its_job(bench: Bench) {
        let held = claimed_by(&bench, bench.living).await;
        assert_eq!(bench.job(held.lease.job).await.progress, None);
        for progress in [progress(3, "page 3"), Progress::told(u64::MAX, None, "späte Seite", START)] {
            let notes = Notes { progress: Some(progress.clone()), lines: vec![] };
            tell(&bench, bench.living, held.lease, notes).await;
            assert_eq!(bench.job(held.lease.job).await.progress, Some(progress.clone()));
            let listed = bench.store.list(flexiq::internals::Filter { limit: 9, ..Default::default() }).await;
            assert_eq!(listed.expect("answers").jobs[0].progress, Some(progress));
        }
        assert_eq!(story(&bench, held.lease.job).await, Story::default(), "it is no part of the log");
    }

    async fn lines_are_kept_in_order_with_their_moment_and_run(bench: Bench) {
        let held = claimed_by(&bench, bench.living).await;
        let lines = vec![line(1, "fetched 10 pages"), line(2, "")];
        tell(&bench, bench.living, held.lease, Notes { progress: None, lines }).await;
        tell(&bench, bench.living, held.lease, Notes { progress: None, lines: vec![line(3, "done")] }).await;
        let story = story(&bench, held.lease.job).await;
        let seen: Vec<_> = story.log.iter().map(|line| (line.at, line.run, &*line.message)).collect();
        let at = |seconds| (START + secs(seconds)).into();
        assert_eq!(seen, [(at(1), 1, "fetched 10 pages"), (at(2), 1, ""), (at(3), 1, "done")]);
    }

    async fn what_is_told_again_is_not_kept_twice(bench: Bench) {
        let held = claimed_by(&bench, bench.living).await;
        for lines in [1..=2, 1..=3, 2..=3] {
            let lines = lines.map(|number| line(number, number.to_string())).collect();
            tell(&bench, bench.living, held.lease, Notes { progress: None, lines }).await;
        }
        let notes = Notes { progress: None, lines: vec![line(3, "3"), line(4, "4")] };
        let finish = Finish { notes: Some(Box::new(notes)), ..Finish::new(held.lease, succeed()) };
        bench.turn(bench.living, vec![finish], None).await;
        let words: Vec<_> = log(&bench, held.lease.job).await.into_iter().map(|(_, word)| word).collect();
        assert_eq!(words, ["1", "2", "3", "4"]);
    }

    async fn the_end_of_a_run_brings_what_it_told_last(bench: Bench) {
        let transitions = [
            succeed(),
            Transition::Succeed { value: Value::Json(vec![b'7'; 1_000]), keep: KEEP },
            Transition::Release,
            Transition::Cancel,
        ];
        for transition in transitions {
            let held = claimed_by(&bench, bench.living).await;
            let notes = Notes { progress: Some(progress(10, "all")), lines: vec![line(1, "done")] };
            let finish = Finish { notes: Some(Box::new(notes)), ..Finish::new(held.lease, transition) };
            bench.turn(bench.living, vec![finish], None).await;
            assert_eq!(bench.job(held.lease.job).await.progress, Some(progress(10, "all")));
            assert_eq!(log(&bench, held.lease.job).await, [(1, "done".into())]);
            bench.store.cancel(held.lease.job).await.expect("answers");
        }
    }

    async fn among_many_alike_each_keeps_what_it_told(bench: Bench) {
        bench.enqueue_many("q", (0..60).map(|_| job("send")).collect()).await;
        let held = bench.claim(bench.living, &["send"], 60).await;
        let finish = |(index, held): (usize, &Claimed)| {
            let notes = (index % 20 == 7).then(|| Box::new(one_line()));
            Finish { notes, ..Finish::new(held.lease, succeed()) }
        };
        bench.turn(bench.living, held.iter().enumerate().map(finish).collect(), None).await;
        assert_eq!(bench.counts("send").await.succeeded, 60);
        for (index, held) in held.iter().enumerate() {
            let lines = usize::from(index % 20 == 7);
            assert_eq!(log(&bench, held.lease.job).await.len(), lines, "job {index}");
        }
    }

    async fn the_next_run_begins_without_the_progress_of_the_last_and_with_its_log(bench: Bench) {
        let first = claimed_by(&bench, bench.living).await.lease;
        let notes = Notes { progress: Some(progress(7, "most")), lines: vec![line(1, "one")] };
        tell(&bench, bench.living, first, notes).await;
        bench.finish(bench.living, first, Transition::Release).await;
        assert_eq!(bench.job(first.job).await.progress, Some(progress(7, "most")), "until it starts again");
        let second = bench.claim(bench.living, &["send"], 1).await[0].lease;
        assert_eq!(bench.job(first.job).await.progress, None);
        tell(&bench, bench.living, second, Notes { progress: None, lines: vec![line(1, "two")] }).await;
        assert_eq!(log(&bench, first.job).await, [(1, "one".into()), (2, "two".into())]);
    }

    async fn a_lost_lease_tells_nothing(bench: Bench) {
        let (lost, other) = (bench.worker().await, bench.worker().await);
        let held = claimed_by(&bench, lost).await.lease;
        let notes = || Notes { progress: Some(progress(1, "")), lines: vec![line(1, "mine")] };
        // Of another worker, of a run that never was, of a job that never was, of another queue.
        tell(&bench, other, held, notes()).await;
        tell(&bench, lost, LeaseId { run: 2, ..held }, notes()).await;
        tell(&bench, lost, LeaseId { job: JobId::new(), run: 1 }, notes()).await;
        let elsewhere = Tell { worker: lost, queue: name("elsewhere"), runs: vec![(held, notes())] };
        bench.store.tell(elsewhere).await.expect("the store answers");
        bench.pass(LEASE + secs(1)).await;
        // Taken back and not yet started again; and started elsewhere.
        tell(&bench, lost, held, notes()).await;
        bench.claim(other, &["send"], 1).await;
        tell(&bench, lost, held, notes()).await;
        let finish = Finish { notes: Some(Box::new(notes())), ..Finish::new(held, succeed()) };
        bench.turn(lost, vec![finish], None).await;
        assert_eq!(bench.job(held.job).await.progress, None);
        assert!(log(&bench, held.job).await.is_empty());
    }

    async fn the_newest_hundred_lines_are_kept(bench: Bench) {
        let held = claimed_by(&bench, bench.living).await;
        for first in [1, 51, 101] {
            let lines = (first..first + 50).map(|number| line(number, number.to_string())).collect();
            tell(&bench, bench.living, held.lease, Notes { progress: None, lines }).await;
        }
        let log = log(&bench, held.lease.job).await;
        assert_eq!((log.len(), &*log[0].1, &*log[99].1), (MOST_LINES, "51", "150"));
    }

    async fn sixteen_kibibytes_of_lines_are_kept(bench: Bench) {
        let held = claimed_by(&bench, bench.living).await;
        for number in 1..=20 {
            let lines = vec![line(number, "x".repeat(1_024))];
            tell(&bench, bench.living, held.lease, Notes { progress: None, lines }).await;
        }
        let story = story(&bench, held.lease.job).await;
        assert_eq!((story.log.len(), story.log[0].at), (16, (START + secs(5)).into()));
    }

    async fn what_was_told_goes_with_its_job(bench: Bench) {
        let id = JobId::new();
        for by_hand in [true, false] {
            bench.enqueue(flexiq::internals::NewJob { id, is_given: true, ..job("send") }).await;
            let held = bench.claim(bench.living, &["send"], 1).await[0].lease;
            let notes = Notes { progress: Some(progress(1, "")), lines: vec![line(1, "begun")] };
            tell(&bench, bench.living, held, notes).await;
            bench.finish(bench.living, held, succeed()).await;
            if by_hand {
                assert!(bench.store.delete(id).await.expect("answers"));
            } else {
                bench.pass(KEEP + secs(1)).await;
            }
            assert_eq!(bench.store.story(id).await.expect("answers"), None);
        }
        // Another job of the same id finds nothing of it.
        bench.enqueue(flexiq::internals::NewJob { id, is_given: true, ..job("send") }).await;
        bench.claim(bench.living, &["send"], 1).await;
        assert_eq!((bench.job(id).await.progress, story(&bench, id).await), (None, Story::default()));
    }

    async fn what_is_told_changes_nothing_else_of_a_job(bench: Bench) {
        let held = claimed_by(&bench, bench.living).await;
        let before = bench.job(held.lease.job).await;
        tell(&bench, bench.living, held.lease, one_line()).await;
        assert_eq!(bench.job(held.lease.job).await, before);
        bench.pass(LEASE).await;
        assert_eq!(bench.state(held.lease.job).await, State::Ready, "nor is it a renewal");
    }
}
