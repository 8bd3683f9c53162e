//! Acts that break one rule each: the judge of gates finds every one, and nothing in those that keep them.

use flexiq::JobId;
use flexiq::internals::{Change, Claim, Limits, Name, Rate, Room, Scope};

use super::{Judged, Violation, gates};
use crate::ledger::{Act, Deed, Lane, Place};

fn name(text: &str) -> Name {
    Name::new("test", text).expect("a name")
}

fn queue() -> Scope {
    Scope::Queue(name("q"))
}

fn task() -> Scope {
    Scope::Task(name("t"))
}

fn partition() -> Scope {
    Scope::Partition(name("t"), "a".into())
}

/// The gates of the jobs of these acts, which are all of one partition.
fn places() -> [Scope; 3] {
    [queue(), task(), partition()]
}

/// Acts under way: so many jobs wait from moment 0 on.
struct Acts {
    acts: Vec<Act>,
    jobs: Vec<JobId>,
}

impl Acts {
    fn with(jobs: usize) -> Self {
        let mut acts = Self { acts: Vec::new(), jobs: Vec::new() };
        (0..jobs).for_each(|_| acts.waits("a", 0, 0));
        acts
    }

    fn waits(&mut self, partition: &str, priority: i8, due: i64) {
        // Ids that grow, so that ties are known.
        let job = JobId::from_bytes((self.jobs.len() as u128).to_be_bytes());
        self.jobs.push(job);
        let lane = Lane { queue: name("q"), task: name("t"), partition: partition.into() };
        self.acts.push(Act { at: 0, deed: Deed::Waits { job, lane, place: Place { priority, due } } });
    }

    fn does(mut self, at: i64, deed: Deed) -> Self {
        self.acts.push(Act { at, deed });
        self
    }

    fn sets(self, at: i64, scope: Scope, change: Change) -> Self {
        self.does(at, Deed::Set { scope, change })
    }

    /// A claim with room for so many gets these jobs.
    fn claims(self, at: i64, room: u32, jobs: &[usize]) -> Self {
        let rooms = vec![Room { task: name("t"), slot: 0, at_most: u32::MAX, max_losses: 3 }];
        let claim = Claim { slots: vec![room], tasks: rooms, lease: std::time::Duration::from_secs(10) };
        let jobs = jobs.iter().map(|&job| self.jobs[job]).collect();
        self.does(at, Deed::Claimed { queue: name("q"), claim, jobs, more: false })
    }

    fn frees(self, at: i64, job: usize) -> Self {
        let job = self.jobs[job];
        self.does(at, Deed::Freed { job })
    }

    fn judged(&self) -> Result<Judged, Violation> {
        gates(&self.acts)
    }
}

fn cap(jobs: u32) -> Change {
    Change::MaxConcurrent(Some(jobs))
}

fn rates(text: &str) -> Change {
    Change::Rates(Some(text.split(',').map(|rate| rate.parse::<Rate>().expect("a rate")).collect()))
}

#[test]
fn one_lease_more_than_a_cap_is_found_wherever_it_stands() {
    for scope in places() {
        let acts = || Acts::with(3).sets(0, scope.clone(), cap(2));
        assert_eq!(acts().claims(1, 9, &[0, 1]).judged(), Ok(Judged { starts: 2, kept: 1 }));
        let found = acts().claims(1, 9, &[0, 1, 2]).judged();
        assert!(matches!(found, Err(Violation::OverCap { cap: 2, found: 3, .. })), "{found:?}");
        let found = acts().claims(1, 2, &[0, 1]).claims(2, 1, &[2]).judged();
        assert!(matches!(found, Err(Violation::OverCap { .. })), "{found:?}");
        acts().claims(1, 9, &[0, 1]).frees(2, 0).claims(2, 9, &[2]).judged().expect("a slot was freed");
    }
}

#[test]
fn a_start_under_a_lowered_cap_is_found_until_enough_have_ended() {
    for scope in places() {
        let acts = Acts::with(4).claims(1, 3, &[0, 1, 2]).sets(2, scope, cap(2)).frees(3, 0);
        let found = acts.claims(3, 9, &[3]).judged();
        assert!(matches!(found, Err(Violation::OverCap { cap: 2, found: 3, .. })), "{found:?}");
    }
}

#[test]
fn a_cap_that_is_declared_holds_unless_another_is_set() {
    let declared = |scope| Deed::Declared {
        limits: vec![(scope, Limits { max_concurrent: Some(1), ..Limits::default() })],
    };
    for (declares, sets) in [(task(), task()), (Scope::EachPartition(name("t")), partition())] {
        let acts = || Acts::with(2).does(0, declared(declares.clone()));
        assert!(matches!(acts().claims(1, 9, &[0, 1]).judged(), Err(Violation::OverCap { .. })));
        acts()
            .sets(0, sets.clone(), cap(2))
            .claims(1, 9, &[0, 1])
            .judged()
            .expect("what is set stands above");
        let found = acts().sets(0, sets.clone(), cap(2)).sets(0, sets, Change::MaxConcurrent(None));
        assert!(matches!(found.claims(1, 9, &[0, 1]).judged(), Err(Violation::OverCap { .. })));
    }
}

#[test]
fn one_start_more_than_a_rate_is_found_in_any_window() {
    for scope in places() {
        let acts = || Acts::with(4).sets(0, scope.clone(), rates("2/s")).claims(900, 9, &[0, 1]);
        acts().claims(1_900, 9, &[2, 3]).judged().expect("the window is over");
        let found = acts().claims(1_899, 9, &[2]).judged();
        assert!(matches!(found, Err(Violation::OverRate { most: 2, found: 3, from: 900, .. })), "{found:?}");
        let found = acts().sets(2_000, scope.clone(), rates("9/s, 2/m")).claims(2_000, 9, &[2]).judged();
        found.expect("the shorter window has been left: a longer one may count what is older, or not");
        let found = acts().sets(1_000, scope.clone(), rates("9/s, 2/m")).claims(1_500, 9, &[2]).judged();
        assert!(matches!(found, Err(Violation::OverRate { period_ms: 60_000, .. })), "{found:?}");
        let spread = Acts::with(2).sets(0, scope.clone(), rates("100/m spread")).claims(0, 1, &[0]);
        let found = spread.claims(598, 1, &[1]).judged();
        assert!(matches!(found, Err(Violation::OverRate { most: 1, .. })), "{found:?}");
    }
}

#[test]
fn a_start_behind_a_pause_or_a_hold_is_found() {
    for scope in places() {
        let acts = || Acts::with(1).sets(0, scope.clone(), Change::Paused(true));
        assert!(matches!(acts().claims(1, 9, &[0]).judged(), Err(Violation::StartedShut { .. })));
        acts()
            .claims(1, 9, &[])
            .sets(2, scope.clone(), Change::Paused(false))
            .claims(2, 9, &[0])
            .judged()
            .expect("resumed");
        let acts = || Acts::with(1).does(0, Deed::Held { scope: scope.clone(), until: 10 });
        assert!(matches!(acts().claims(9, 9, &[0]).judged(), Err(Violation::StartedShut { .. })));
        acts().claims(9, 9, &[]).claims(10, 9, &[0]).judged().expect("it is over");
        acts().sets(1, scope.clone(), Change::Paused(false)).claims(1, 9, &[0]).judged().expect("resumed");
        let longer = acts().does(1, Deed::Held { scope: scope.clone(), until: 5 });
        assert!(matches!(longer.claims(9, 9, &[0]).judged(), Err(Violation::StartedShut { .. })));
    }
}

#[test]
fn a_start_of_what_does_not_wait_is_not_due_or_has_no_room_is_found() {
    assert!(matches!(Acts::with(1).claims(1, 0, &[0]).judged(), Err(Violation::OverRoom { .. })));
    let twice = Acts::with(1).claims(1, 9, &[0]).claims(2, 9, &[0]).judged();
    assert!(matches!(twice, Err(Violation::StartedShut { .. })), "{twice:?}");
    let mut later = Acts::with(0);
    later.waits("a", 0, 10);
    assert!(matches!(later.claims(9, 9, &[0]).judged(), Err(Violation::StartedShut { .. })));
}

#[test]
fn a_start_before_a_more_urgent_or_an_older_job_is_found() {
    for (partition, priority) in [("a", 1), ("b", 1), ("", 1), ("a", 0)] {
        let acts = || {
            let mut acts = Acts::with(0);
            acts.waits("a", 0, 5);
            acts.waits(partition, priority, 4);
            acts
        };
        acts().claims(9, 1, &[1]).judged().expect("the right one");
        let found = acts().claims(9, 1, &[0]).judged();
        assert!(matches!(found, Err(Violation::OutOfOrder { .. })), "{partition} {priority}: {found:?}");
    }
    let mut acts = Acts::with(1);
    acts.waits("b", 1, 0);
    let b = Scope::Partition(name("t"), "b".into());
    acts.sets(0, b, Change::Paused(true)).claims(1, 1, &[0]).judged().expect("the more urgent one may not");
}

#[test]
fn a_job_that_is_left_while_all_gates_admit_it_is_found() {
    assert!(matches!(Acts::with(2).claims(1, 2, &[0]).judged(), Err(Violation::LeftIdle { .. })));
    Acts::with(2).claims(1, 1, &[0]).judged().expect("there is no room for it");
    for scope in places() {
        let open = Acts::with(3).sets(0, scope.clone(), cap(2)).claims(1, 9, &[0]).judged();
        assert!(matches!(open, Err(Violation::LeftIdle { .. })), "{open:?}");
        let freed =
            Acts::with(2).sets(0, scope.clone(), cap(1)).claims(1, 9, &[0]).frees(2, 0).claims(2, 9, &[]);
        assert!(matches!(freed.judged(), Err(Violation::LeftIdle { .. })));
        let left =
            Acts::with(2).sets(0, scope.clone(), rates("1/s")).claims(1, 9, &[0]).claims(1_001, 9, &[]);
        assert!(matches!(left.judged(), Err(Violation::LeftIdle { .. })));
        let raised = Acts::with(2).sets(0, scope.clone(), cap(1)).claims(1, 9, &[0]).sets(2, scope, cap(2));
        assert!(matches!(raised.claims(2, 9, &[]).judged(), Err(Violation::LeftIdle { .. })));
    }
}
