//! schedule, schedules and tick: a schedule that is due is told, and advances once, with one job.

use flexiq::JobId;
use flexiq::internals::{
    CronSchedule, DueTick, KEPT_ASLEEP, Limits, MOST_SCHEDULES, Name, Origin, Outset, Planning, Schedule,
    Seen, Standby, TOLD_FOR, Tick, Ticked, Timestamp, WorkerId,
};

use crate::harness::*;

/// Ticks every minute; the store does not know that.
pub(crate) fn every_minute(task: &str) -> Schedule {
    Schedule {
        cron: CronSchedule { pattern: "* * * * *".into(), timezone: "UTC".into() },
        catch_up: false,
        task: name(task),
        partition: String::new(),
        max_pending_per_partition: None,
        arguments: "{}".into(),
        priority: 0,
        expires: None,
        outset: Outset::default(),
    }
}

/// The same with another pattern.
fn every(pattern: &str, task: &str) -> Schedule {
    let cron = CronSchedule { pattern: pattern.into(), timezone: "UTC".into() };
    Schedule { cron, ..every_minute(task) }
}

/// A step to where the test says the schedule ticks next.
fn step(due: &DueTick, next: Timestamp) -> Tick {
    let job = matches!(due.seen, Seen::Tick(_)).then(JobId::new);
    Tick { due: due.clone(), next, job, max_pending: None }
}

impl Bench {
    async fn plan(&self, schedule: &str, planning: Planning) {
        self.store.schedule(name("q"), name(schedule), planning).await.expect("it is planned");
    }

    async fn set(&self, schedule: &str, of: Schedule) {
        self.plan(schedule, Planning::Set(Box::new(of))).await;
    }

    /// What a claim of the queue "q" is told of that has room for nothing.
    async fn told(&self) -> Vec<DueTick> {
        self.turn(self.living, vec![], Some(claim(&["send"], 0))).await.ticks
    }

    async fn told_one(&self) -> DueTick {
        let told = self.told().await;
        let [due] = &told[..] else { panic!("one is due: {told:?}") };
        due.clone()
    }

    async fn tick(&self, tick: Tick) -> Ticked {
        self.store.tick(tick).await.expect("the tick is answered")
    }

    /// Begins the one schedule that was set or declared, so that it ticks in a minute.
    async fn begin(&self) -> Timestamp {
        let (due, next) = (self.told_one().await, self.now() + secs(60));
        assert_eq!(self.tick(step(&due, next)).await, Ticked::Done);
        next
    }

    async fn schedules(&self) -> Vec<Standby> {
        self.store.schedules().await.expect("the store answers")
    }

    async fn standby(&self) -> Standby {
        let all = self.schedules().await;
        let [standby] = &all[..] else { panic!("there is one: {all:?}") };
        standby.clone()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.store.clock().now()
    }

    /// A new worker that lives, and declares this cron, or none, for the task "send" of a queue.
    async fn with_cron(&self, queue: &str, schedule: Option<Schedule>) -> WorkerId {
        let worker = WorkerId::new();
        self.say(worker, queue, schedule).await;
        worker
    }

    async fn say(&self, worker: WorkerId, queue: &str, schedule: Option<Schedule>) {
        let mut hello = self.hello_of(worker, queue, "send", Limits::default());
        hello.tasks[0].schedule = schedule;
        self.store.register(hello).await.expect("a worker registers");
    }
}

for_every_store! {
    async fn a_schedule_is_told_when_it_was_set_and_when_it_ticks(bench: Bench) {
        bench.set("nightly", every_minute("send")).await;
        let due = bench.told_one().await;
        assert_eq!((due.queue.as_str(), due.name.as_str(), due.catch_up), ("q", "nightly", false));
        assert_eq!((due.seen, due.now), (Seen::Since(START), START));
        assert_eq!(due.cron, every_minute("send").cron);
        assert_eq!(bench.tick(step(&due, START + secs(60))).await, Ticked::Done);
        assert_eq!(bench.counts("send").await.pending(), 0, "to begin is no tick");

        bench.pass(millis(59_999)).await;
        assert_eq!(bench.told().await, []);
        bench.hands.advance(millis(1));
        let due = bench.told_one().await;
        assert_eq!((due.seen, due.now), (Seen::Tick(START + secs(60)), START + secs(60)));
        let tick = step(&due, START + secs(120));
        let id = tick.job.expect("a tick makes a job");
        assert_eq!(bench.tick(tick).await, Ticked::Done);
        let job = bench.job(id).await;
        assert_eq!((job.task.as_str(), job.queue.as_str()), ("send", "q"));
        assert_eq!(ids(&bench.claim(bench.living, &["send"], 5).await), [id]);

        let standby = bench.standby().await;
        assert_eq!((standby.seen, standby.last), (Seen::Tick(START + secs(120)), Some(START + secs(60))));
        assert_eq!((standby.origin, standby.last_skipped), (Origin::Set, None));
        assert!(!standby.is_paused && !standby.is_asleep);
    }

    async fn a_job_of_a_tick_is_what_was_scheduled(bench: Bench) {
        let outset = Outset { timeout: Some(secs(7)), max_retries: Some(2), result_ttl: Some(secs(9)) };
        let schedule = Schedule {
            partition: "ämter".into(),
            arguments: r#"{"month":"2026-10"}"#.into(),
            priority: 7,
            expires: Some(secs(30)),
            outset,
            ..every_minute("send")
        };
        bench.set("nightly", schedule.clone()).await;
        assert_eq!(bench.standby().await.schedule, schedule);
        bench.begin().await;
        bench.hands.advance(secs(60));
        let tick = step(&bench.told_one().await, bench.now() + secs(60));
        bench.tick(tick.clone()).await;
        let job = bench.job(tick.job.expect("a tick makes a job")).await;
        assert_eq!((job.priority, job.expires_at), (7, Some((bench.now() + secs(30)).into())));
        let claimed = bench.claim(bench.living, &["send"], 5).await;
        assert_eq!(claimed[0].payload.bytes, schedule.arguments.as_bytes());
        assert_eq!((claimed[0].outset, claimed[0].partition.as_str()), (outset, "ämter"));
    }

    async fn a_tick_advances_once_whoever_sends_it(bench: Bench) {
        bench.set("nightly", every_minute("send")).await;
        bench.begin().await;
        bench.hands.advance(secs(60));
        let due = bench.told_one().await;
        let next = bench.now() + secs(60);
        let tick = step(&due, next);
        assert_eq!(bench.tick(tick.clone()).await, Ticked::Done);
        // Again after an answer that was lost, and by another worker that was told the same.
        assert_eq!(bench.tick(tick).await, Ticked::Late);
        assert_eq!(bench.tick(step(&due, next)).await, Ticked::Late);
        assert_eq!(bench.counts("send").await.pending(), 1);
    }

    async fn nobody_else_is_told_until_whoever_was_told_may_have_died(bench: Bench) {
        bench.set("nightly", every_minute("send")).await;
        let first = bench.told_one().await;
        assert_eq!(bench.told().await, []);
        assert_eq!(bench.beat(bench.living, &[]).await.ticks, []);
        bench.hands.advance(TOLD_FOR - millis(1));
        assert_eq!(bench.told().await, []);
        bench.hands.advance(millis(1));
        let again = bench.told_one().await;
        assert_eq!((again.seen, again.now), (first.seen, START + TOLD_FOR));
        // Both may send: one advances it.
        assert_eq!(bench.tick(step(&first, START + secs(60))).await, Ticked::Done);
        assert_eq!(bench.tick(step(&again, START + secs(60))).await, Ticked::Late);
    }

    async fn a_beat_is_told_what_is_due_in_every_queue(bench: Bench) {
        bench.set("nightly", every_minute("send")).await;
        bench.store.schedule(name("p"), name("other"), Planning::Set(Box::new(every_minute("x")))).await.expect("set");
        let told = bench.beat(bench.living, &[]).await.ticks;
        let told: Vec<_> = told.iter().map(|due| (due.queue.as_str(), due.name.as_str())).collect();
        assert_eq!(told, [("p", "other"), ("q", "nightly")]);
    }

    async fn between_its_ticks_a_schedule_wakes_nobody(bench: Bench) {
        bench.set("nightly", every_minute("send")).await;
        bench.begin().await;
        let (_, mut wait) = asleep(&bench, &["send"]).await;
        bench.hands.advance(millis(59_999));
        assert!(bench.is_pending(&mut wait).await, "it is not due yet");
        bench.hands.advance(millis(1));
        assert_eq!(woken(wait).await, ["q"]);
    }

    async fn a_tick_without_room_is_skipped_and_remembered(bench: Bench) {
        bench.set("nightly", every_minute("send")).await;
        let first = bench.begin().await;
        bench.enqueue(job("send")).await;
        bench.hands.advance(secs(60));
        let due = bench.told_one().await;
        let tick = Tick { max_pending: Some(1), ..step(&due, bench.now() + secs(60)) };
        assert_eq!(bench.tick(tick).await, Ticked::Skipped);
        assert_eq!(bench.counts("send").await.pending(), 1);
        let standby = bench.standby().await;
        assert_eq!((standby.last, standby.last_skipped), (None, Some(first)));
        assert_eq!(standby.seen, Seen::Tick(first + secs(60)));
    }

    async fn a_tick_without_room_in_its_partition_is_skipped(bench: Bench) {
        let schedule =
            Schedule { partition: "acme".into(), max_pending_per_partition: Some(1), ..every_minute("send") };
        bench.set("nightly", schedule).await;
        let mut tick_at = bench.begin().await;
        for expected in [Ticked::Done, Ticked::Skipped] {
            bench.hands.advance(secs(60));
            tick_at = tick_at + secs(60);
            assert_eq!(bench.tick(step(&bench.told_one().await, tick_at)).await, expected);
        }
        assert_eq!(bench.counts("send").await.pending(), 1);
    }

    async fn a_missed_tick_advances_without_a_job(bench: Bench) {
        bench.set("nightly", every_minute("send")).await;
        bench.begin().await;
        bench.hands.advance(secs(3_600));
        let due = bench.told_one().await;
        let tick = Tick { job: None, ..step(&due, bench.now() + secs(60)) };
        assert_eq!(bench.tick(tick).await, Ticked::Done);
        let standby = bench.standby().await;
        assert_eq!((standby.seen, standby.last), (Seen::Tick(bench.now() + secs(60)), None));
        assert_eq!(bench.counts("send").await.pending(), 0);
    }

    async fn a_paused_schedule_does_not_tick_and_begins_anew_when_it_is_resumed(bench: Bench) {
        bench.set("nightly", every_minute("send")).await;
        bench.begin().await;
        bench.hands.advance(secs(60));
        let due = bench.told_one().await;
        bench.plan("nightly", Planning::Paused(true)).await;
        bench.plan("nightly", Planning::Paused(true)).await;
        // Whoever was told just before comes too late.
        assert_eq!(bench.tick(step(&due, bench.now() + secs(60))).await, Ticked::Late);
        bench.pass(secs(600)).await;
        assert_eq!(bench.told().await, []);
        assert!(bench.standby().await.is_paused);

        bench.plan("nightly", Planning::Paused(false)).await;
        let due = bench.told_one().await;
        assert_eq!(due.seen, Seen::Since(bench.now()));
        bench.tick(step(&due, bench.now() + secs(60))).await;
        // To resume what ticks changes nothing.
        bench.plan("nightly", Planning::Paused(false)).await;
        assert_eq!(bench.standby().await.seen, Seen::Tick(bench.now() + secs(60)));
        assert_eq!(bench.told().await, []);
    }

    async fn a_schedule_that_is_set_again_keeps_its_tick_unless_its_cron_differs(bench: Bench) {
        bench.set("nightly", every_minute("send")).await;
        let next = bench.begin().await;
        bench.pass(secs(10)).await;
        bench.set("nightly", Schedule { priority: 3, catch_up: true, ..every_minute("send") }).await;
        assert_eq!(bench.told().await, []);
        let standby = bench.standby().await;
        assert_eq!((standby.seen, standby.schedule.priority), (Seen::Tick(next), 3));

        bench.set("nightly", every("*/2 * * * *", "send")).await;
        let due = bench.told_one().await;
        assert_eq!((due.seen, due.cron.pattern.as_str()), (Seen::Since(bench.now()), "*/2 * * * *"));
        // Who still goes by what it was is late.
        let before = DueTick { cron: every_minute("send").cron, ..due.clone() };
        assert_eq!(bench.tick(step(&before, bench.now() + secs(60))).await, Ticked::Late);
        assert_eq!(bench.tick(step(&due, bench.now() + secs(120))).await, Ticked::Done);
    }

    async fn a_schedule_that_is_taken_back_ticks_no_more(bench: Bench) {
        bench.set("nightly", every_minute("send")).await;
        bench.begin().await;
        bench.hands.advance(secs(60));
        let due = bench.told_one().await;
        bench.plan("nightly", Planning::Removed).await;
        bench.plan("nightly", Planning::Removed).await;
        assert_eq!(bench.tick(step(&due, bench.now() + secs(60))).await, Ticked::Late);
        assert_eq!(bench.schedules().await, []);
        bench.hands.advance(secs(60));
        assert_eq!(bench.told().await, []);
        // Nor does anything happen to what is not there.
        bench.plan("other", Planning::Paused(true)).await;
        bench.store.schedule(name("nowhere"), name("other"), Planning::Removed).await.expect("answered");
        assert!(!bench.store.queues().await.expect("answered").contains(&name("nowhere")));
    }

    async fn a_queue_keeps_no_more_schedules_than_it_may(bench: Bench) {
        for number in 0..MOST_SCHEDULES {
            bench.set(&format!("s{number}"), every_minute("send")).await;
        }
        let one_more = Planning::Set(Box::new(every_minute("send")));
        let refused = bench.store.schedule(name("q"), name("more"), one_more.clone()).await;
        let told = refused.expect_err("there are enough").to_string();
        assert!(told.contains("at most 1000") && told.contains("delete_schedule"), "{told}");
        bench.set("s7", every("*/2 * * * *", "send")).await;
        bench.store.schedule(name("p"), name("more"), one_more).await.expect("another queue has room");
        bench.plan("s7", Planning::Removed).await;
        bench.set("more", every_minute("send")).await;
        assert_eq!(bench.schedules().await.len(), MOST_SCHEDULES + 1);
        // A step tells of some, the next of others.
        let told = bench.told().await;
        let names: Vec<&Name> = told.iter().map(|due| &due.name).collect();
        assert_eq!(told.len(), 100);
        assert!(bench.told().await.iter().all(|due| !names.contains(&&due.name)));
    }

    async fn schedules_are_shown_by_name_and_queue(bench: Bench) {
        bench.set("b", every_minute("send")).await;
        bench.set("a", every_minute("send")).await;
        bench.store.schedule(name("p"), name("b"), Planning::Set(Box::new(every_minute("x")))).await.expect("set");
        let all = bench.schedules().await;
        let all: Vec<_> = all.iter().map(|standby| (standby.name.as_str(), standby.queue.as_str())).collect();
        assert_eq!(all, [("a", "q"), ("b", "p"), ("b", "q")]);
    }

    async fn what_a_worker_declares_ticks_as_long_as_one_lives_that_does(bench: Bench) {
        let first = bench.with_cron("q", Some(every_minute("send"))).await;
        let standby = bench.standby().await;
        assert_eq!((standby.name.as_str(), standby.origin), ("send", Origin::Declared));
        let next = bench.begin().await;
        let second = bench.with_cron("q", Some(every_minute("send"))).await;
        assert_eq!(bench.standby().await.seen, Seen::Tick(next), "the same cron keeps its tick");
        bench.store.retire(second).await.expect("it retires");
        assert!(!bench.standby().await.is_asleep);
        bench.store.retire(first).await.expect("it retires");
        assert!(bench.standby().await.is_asleep);
        bench.pass(secs(120)).await;
        assert_eq!(bench.told().await, []);

        // Whoever declares it again finds the tick that it has reached.
        bench.with_cron("q", Some(every_minute("send"))).await;
        assert_eq!(bench.told_one().await.seen, Seen::Tick(next));
    }

    async fn the_youngest_living_worker_says_which_cron_holds(bench: Bench) {
        let old = bench.with_cron("q", Some(every_minute("send"))).await;
        bench.begin().await;
        let young = bench.with_cron("q", Some(every("*/2 * * * *", "send"))).await;
        assert_eq!(bench.standby().await.schedule.cron.pattern, "*/2 * * * *");
        assert_eq!(bench.told_one().await.seen, Seen::Since(START));
        // One that links the task and declares none says so.
        let none = bench.with_cron("q", None).await;
        assert!(bench.standby().await.is_asleep);
        bench.store.retire(none).await.expect("it retires");
        assert!(!bench.standby().await.is_asleep);
        // One that does not link the task says nothing.
        bench.taking("q", "other", Limits::default()).await;
        assert!(!bench.standby().await.is_asleep);
        bench.store.retire(young).await.expect("it retires");
        assert_eq!(bench.standby().await.schedule.cron.pattern, "* * * * *");
        bench.say(old, "q", None).await;
        assert!(bench.standby().await.is_asleep);
    }

    async fn what_a_worker_declared_that_fell_silent_sleeps(bench: Bench) {
        let silent = bench.with_cron("q", Some(every_minute("send"))).await;
        bench.begin().await;
        bench.pass(LEASE + BEAT).await;
        assert!(bench.standby().await.is_asleep);
        bench.beat(silent, &[]).await;
        assert!(!bench.standby().await.is_asleep);
    }

    async fn whoever_declares_a_cron_is_seen_like_any_other_worker(bench: Bench) {
        let worker = bench.with_cron("q", Some(every_minute("send"))).await;
        let seen = bench.store.stats().await.expect("the store answers").workers;
        assert!(seen.iter().any(|facts| facts.worker == worker), "{seen:?}");
        assert_eq!(bench.store.limits().await.expect("the store answers"), []);
    }

    async fn a_cron_moves_with_its_task_to_another_queue(bench: Bench) {
        bench.with_cron("q", Some(every_minute("send"))).await;
        bench.begin().await;
        let moved = bench.with_cron("p", Some(every_minute("send"))).await;
        let all = bench.schedules().await;
        let all: Vec<_> = all.iter().map(|standby| (standby.queue.as_str(), standby.is_asleep)).collect();
        assert_eq!(all, [("p", false), ("q", true)]);
        bench.store.retire(moved).await.expect("it retires");
        let all = bench.schedules().await;
        let all: Vec<_> = all.iter().map(|standby| (standby.queue.as_str(), standby.is_asleep)).collect();
        assert_eq!(all, [("p", true), ("q", false)]);
    }

    async fn what_is_set_stands_above_what_is_declared(bench: Bench) {
        bench.set("send", every("*/2 * * * *", "send")).await;
        let worker = bench.with_cron("q", Some(every_minute("send"))).await;
        assert_eq!(bench.standby().await.schedule.cron.pattern, "*/2 * * * *");
        bench.store.retire(worker).await.expect("it retires");
        assert!(!bench.standby().await.is_asleep);
        bench.with_cron("q", Some(every_minute("send"))).await;
        bench.plan("send", Planning::Removed).await;
        let standby = bench.standby().await;
        assert_eq!((standby.schedule.cron.pattern.as_str(), standby.origin), ("* * * * *", Origin::Declared));
        // What a living worker declares is not taken back.
        bench.plan("send", Planning::Removed).await;
        assert_eq!(bench.schedules().await.len(), 1);
    }

    async fn a_declared_schedule_stays_paused_through_a_deploy(bench: Bench) {
        let old = bench.with_cron("q", Some(every_minute("send"))).await;
        bench.plan("send", Planning::Paused(true)).await;
        bench.store.retire(old).await.expect("it retires");
        bench.with_cron("q", Some(every("*/2 * * * *", "send"))).await;
        assert!(bench.standby().await.is_paused);
        assert_eq!(bench.told().await, []);
    }

    async fn what_nobody_declares_any_more_is_forgotten_after_a_while_or_by_hand(bench: Bench) {
        let worker = bench.with_cron("q", Some(every_minute("send"))).await;
        bench.store.retire(worker).await.expect("it retires");
        bench.hands.advance(KEPT_ASLEEP - millis(1));
        bench.beat(bench.living, &[]).await;
        assert!(bench.standby().await.is_asleep);
        bench.hands.advance(millis(1));
        bench.told().await;
        assert_eq!(bench.schedules().await, []);

        let worker = bench.with_cron("q", Some(every_minute("send"))).await;
        bench.store.retire(worker).await.expect("it retires");
        bench.plan("send", Planning::Removed).await;
        assert_eq!(bench.schedules().await, []);
    }

    async fn a_schedule_of_a_queue_that_nobody_knows_makes_it_known(bench: Bench) {
        bench.store.schedule(name("new"), name("s"), Planning::Set(Box::new(every_minute("x")))).await.expect("set");
        assert!(bench.store.queues().await.expect("answered").contains(&name("new")));
        let unknown = DueTick {
            queue: name("nowhere"),
            name: name("s"),
            cron: every_minute("x").cron,
            catch_up: false,
            seen: Seen::Since(START),
            now: START,
        };
        assert_eq!(bench.tick(step(&unknown, START + secs(60))).await, Ticked::Late);
    }
}

for_every_store_with_bells! {
    async fn a_schedule_wakes_a_sleeper_and_its_job_another(bench: Bench) {
        let (_, wait) = asleep(&bench, &["send"]).await;
        bench.set("nightly", every_minute("send")).await;
        assert_eq!(woken(wait).await, ["q"]);
        bench.begin().await;
        let (worker, wait) = asleep(&bench, &["send"]).await;
        bench.hands.advance(secs(60));
        assert_eq!(woken(wait).await, ["q"]);
        let (_, other) = asleep(&bench, &["send"]).await;
        let due = bench.turn(worker, vec![], Some(claim(&["send"], 10))).await.ticks;
        bench.tick(step(&due[0], bench.now() + secs(60))).await;
        assert_eq!(woken(other).await, ["q"]);
    }
}
