//! Lost answers: a history is played again and again, each time with the connection cut at another of its requests, after
//! the server has carried it out or before. Whoever gets no answer asks again, and all ends as if nothing had happened.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use flexiq::internals::redis::{RedisOptions, RedisStore};
use flexiq::internals::*;
use flexiq::{Effect, Error, JobId};
use flexiq_tests::proxy::{Cut, Proxy};
use flexiq_tests::redis_server::Server;

use crate::harness::*;
use crate::permits::one_of;
use crate::schedules::every_minute;

/// Someone who plays a history, and asks again for what got no answer.
struct Player {
    store: Arc<RedisStore>,
    /// The same store, by a way that is never cut.
    direct: Arc<RedisStore>,
    hands: ManualClock,
    turns: Cell<u64>,
    unknown: Cell<u32>,
    /// What was seen, which no cut may change.
    seen: RefCell<Vec<String>>,
    /// Of each claimed job, whether a cap was said to count it.
    capped: RefCell<Vec<bool>>,
}

impl Player {
    async fn at(proxy: &Proxy, server: &Server) -> Self {
        let (clock, hands) = Clock::manual(START);
        let prefix = name(&format!("cut-{}", JobId::new()));
        let open = async |url: String| {
            let mut options = RedisOptions::from_url(&url).expect("the URL is one of Redis");
            (options.clock, options.prefix) = (clock.clone(), prefix.clone());
            RedisStore::open(options).await.expect("the store opens")
        };
        Self {
            store: open(proxy.url()).await,
            direct: open(server.url()).await,
            hands,
            turns: Cell::new(0),
            unknown: Cell::new(0),
            seen: RefCell::default(),
            capped: RefCell::default(),
        }
    }

    /// The answer of a step, which is asked for again while it is not known.
    async fn again<'a, T>(&'a self, step: impl Fn(&'a dyn Store) -> Step<'a, T>) -> T {
        self.ask(&self.store, step).await
    }

    async fn ask<'a, T>(&self, store: &'a Arc<RedisStore>, step: impl Fn(&'a dyn Store) -> Step<'a, T>) -> T {
        loop {
            match soon(step(&**store)).await {
                Ok(answer) => return answer,
                Err(Error::StoreUnavailable { effect: Effect::Unknown, .. }) => {
                    self.unknown.set(self.unknown.get() + 1);
                }
                Err(other) => panic!("a cut is no {other:?}"),
            }
        }
    }

    /// Lets arrive what is on its way.
    async fn catch_up(&self) {
        while self.store.catch_up().await.is_err() {}
    }

    fn see(&self, what: &str, seen: impl std::fmt::Debug) {
        self.seen.borrow_mut().push(format!("{what}: {seen:?}"));
    }

    async fn register(&self, worker: WorkerId, cap: Option<u32>) {
        let declared = Declared {
            task: name("send"),
            queue: name("q"),
            json: "{}".into(),
            limits: Limits { max_concurrent: cap, ..Limits::default() },
            per_partition: Limits::default(),
            schedule: None,
        };
        let queues = vec![(name("q"), Limits::default()), (name("r"), Limits::default())];
        let hello = Hello { worker, label: "host:1".into(), lease: LEASE, queues, tasks: vec![declared] };
        self.again(|store| store.register(hello.clone())).await;
    }

    async fn enqueue(&self, queue: &str, jobs: Vec<NewJob>) {
        let batch = Enqueue { queue: name(queue), jobs, max_pending: Some(50), producer: None };
        let stored = self.again(|store| store.enqueue(batch.clone())).await;
        self.see("stored", stored.iter().map(|enqueued| enqueued.id).collect::<Vec<_>>());
    }

    async fn turn(&self, worker: WorkerId, finishes: Vec<Finish>, claim: Option<Claim>) -> Vec<LeaseId> {
        self.turns.set(self.turns.get() + 1);
        let turn = Turn { worker, queue: name("q"), number: self.turns.get(), finishes, claim };
        let turn = Arc::new(turn);
        let answer = self.again(|store| store.turn(turn.clone())).await;
        self.see("finished", (&answer.finished, answer.more));
        for claimed in &answer.claimed {
            self.capped.borrow_mut().push(claimed.is_capped);
            self.see("claimed", Claimed { is_capped: false, ..claimed.clone() });
        }
        answer.claimed.iter().map(|claimed| claimed.lease).collect()
    }

    async fn beat(&self, worker: WorkerId, leases: &[LeaseId]) {
        let leases = leases.iter().map(|&lease| (lease, Lapse::Loss)).collect();
        let beat = Beat { worker, lease: LEASE, every: BEAT, leases, permits: Vec::new(), report: None };
        let answer = self.again(|store| store.extend(beat.clone())).await;
        self.see("beat", (answer.lost, answer.is_unknown));
    }

    async fn limit(&self, scope: Scope, change: Change) {
        self.again(|store| store.limit(scope.clone(), change.clone())).await;
    }

    /// A worker's wait, which has entered its lines. After a cut it may be over already, for then a worker looks itself.
    async fn asleep(&self, worker: WorkerId) -> Step<'_, Wake> {
        let mut wait = self.store.wait(interest(worker, &[("q", &["send"]), ("r", &["send"])]));
        for _ in 0..6 {
            if let std::task::Poll::Ready(answer) = poll(&mut wait).await {
                return Box::pin(std::future::ready(answer));
            }
            self.catch_up().await;
        }
        wait
    }

    /// Waits and claims until there was something to claim.
    async fn woken_claim(&self, worker: WorkerId, wait: Step<'_, Wake>) -> Vec<LeaseId> {
        let mut wait = wait;
        loop {
            match soon(wait).await {
                Ok(_) | Err(Error::StoreUnavailable { .. }) => {}
                Err(other) => panic!("a cut is no {other:?}"),
            }
            self.turns.set(self.turns.get() + 1);
            let (number, claim) = (self.turns.get(), Some(claim(&["send"], 1)));
            let turn = Arc::new(Turn { worker, queue: name("q"), number, finishes: Vec::new(), claim });
            let answer = self.again(|store| store.turn(turn.clone())).await;
            if !answer.claimed.is_empty() {
                let leases = answer.claimed.iter().map(|claimed| claimed.lease).collect();
                self.see("woken", &leases);
                return leases;
            }
            wait = self.asleep(worker).await;
        }
    }

    /// One run holds a permit and gives it back, for which the job of another waits. Whoever was to call it may have been
    /// cut off: then the next beat does.
    async fn permits(&self, worker: WorkerId, runs: &[LeaseId]) {
        let ask = |lease| Ask { rates: rates("5/m"), ..one_of(1, lease) };
        let (holder, waits) = (ask(runs[0]), ask(runs[1]));
        self.see("asked", self.again(|store| store.acquire(holder.clone())).await);
        let refused = self.again(|store| store.acquire(waits.clone())).await;
        self.see("asked", refused);
        let Asked::Refused { due } = refused else { panic!("there is one permit") };
        let wait = Transition::Schedule { reason: ScheduledReason::Limit, due: Due::At(due), error: None };
        self.turn(worker, vec![Finish::new(runs[1], wait)], None).await;
        let given = vec![GiveBack { ask: holder, hold: None }];
        self.again(|store| store.give_back(given.clone())).await;
        // Two beats before the reservation lapses, neither of which is far behind the call.
        self.hands.advance(millis(2_100));
        self.beat(worker, runs).await;
        self.hands.advance(millis(2_100));
        self.beat(worker, runs).await;
        let job = self.ask(&self.direct, |store| store.job(runs[1].job)).await.expect("it is stored");
        self.see("called", job.state);
    }

    /// A schedule is set and ticks once, whoever hears of that; then it is paused, resumed and taken back. Which are due is told
    /// by the way that is never cut, for what is told is told once in a while.
    async fn schedule(&self, worker: WorkerId, number: u8) {
        let (queue, nightly) = (name("q"), name("nightly"));
        let plan = async |planning: Planning| {
            self.again(|store| store.schedule(queue.clone(), nightly.clone(), planning.clone())).await;
        };
        plan(Planning::Set(Box::new(every_minute("other")))).await;
        for job in [None, Some(JobId::from_bytes([number; 16]))] {
            let beat =
                Beat { worker, lease: LEASE, every: BEAT, leases: vec![], permits: vec![], report: None };
            let told = self.ask(&self.direct, |store| store.extend(beat.clone())).await.ticks;
            self.see("told", &told);
            let next = told[0].now + secs(1);
            let tick = Tick { due: told[0].clone(), next, job, max_pending: Some(50) };
            self.again(|store| store.tick(tick.clone())).await;
            self.hands.advance(secs(1));
        }
        plan(Planning::Paused(true)).await;
        plan(Planning::Paused(false)).await;
        self.see("schedules", self.again(Store::schedules).await);
        plan(Planning::Removed).await;
    }

    /// Everything that can be seen of the store.
    async fn look(&self, store: &Arc<RedisStore>) {
        let mut filter = Filter { limit: 1_000, ..Filter::default() };
        loop {
            let page = self.ask(store, |store| store.list(filter.clone())).await;
            for job in page.jobs {
                self.see("job", &job);
                let key = JobKey { queue: name(&job.queue), id: job.id };
                if job.state.is_ended() {
                    self.see("end", self.ask(&self.direct, |store| store.ended(key.clone())).await);
                }
            }
            filter.after = page.reached;
            if filter.after.is_none() {
                break;
            }
        }
        self.see("counts", self.ask(store, Store::counts).await);
        self.see("limits", self.ask(store, Store::limits).await);
        self.see("declarations", self.ask(store, Store::declarations).await);
        self.see("queues", self.ask(store, Store::queues).await);
        self.see("schedules", self.ask(store, Store::schedules).await);
    }
}

async fn poll<T>(step: &mut Step<'_, T>) -> std::task::Poll<flexiq::Result<T>> {
    std::future::poll_fn(|context| std::task::Poll::Ready(step.as_mut().poll(context))).await
}

/// A job of its own number, whose id the caller chose.
fn given(task: &str, number: u8) -> NewJob {
    NewJob { id: JobId::from_bytes([number; 16]), is_given: true, ..job(task) }
}

/// One of which there is to be one, which brings it newer arguments.
fn only_one(number: u8) -> NewJob {
    let unique = Unique {
        key: UniqueKey::by_text(&name("send"), "a"),
        release: Release::AtEnd { at_least: secs(2) },
        on_duplicate: OnDuplicate::Postpone,
    };
    NewJob { unique: Some(unique), ..given("send", number) }
}

fn worker(number: u8) -> WorkerId {
    WorkerId::from_bytes([number; 16])
}

/// A history with every verb in it.
async fn play(player: &Player) {
    let (first, second) = (worker(1), worker(2));
    let of_task = || Scope::Task(name("send"));
    player.register(first, Some(3)).await;
    player.register(second, None).await;

    player.enqueue("q", vec![only_one(1), only_one(12)]).await;
    let unlike_any = (2..=7).map(|number| NewJob { is_given: false, ..given("send", number) });
    player.enqueue("q", unlike_any.collect()).await;
    let odd = vec![
        NewJob { due: Due::In(secs(30)), expires: Some(secs(5)), ..given("send", 8) },
        NewJob { priority: 9, expires: Some(secs(60)), ..given("other", 9) },
        given("send", 1),
    ];
    player.enqueue("q", odd).await;
    player.enqueue("r", vec![given("send", 10)]).await;

    player.limit(of_task(), Change::MaxConcurrent(Some(4))).await;
    player.limit(of_task(), Change::Rates(Some(rates("5/m")))).await;
    player.limit(Scope::Queue(name("r")), Change::Paused(true)).await;

    let held = player.turn(first, vec![], Some(claim(&["send"], 3))).await;
    player.beat(first, &held).await;
    player.again(|store| store.cancel(held[2].job)).await;
    player.again(|store| store.cancel(JobId::from_bytes([7; 16]))).await;
    player.hands.advance(secs(1));

    let key = JobKey { queue: name("q"), id: held[0].job };
    let mut ended = player.store.ended(key.clone());
    for _ in 0..3 {
        if poll(&mut ended).await.is_ready() {
            break;
        }
        player.catch_up().await;
    }
    let retry = Transition::Schedule {
        reason: ScheduledReason::Retry,
        due: Due::In(secs(3)),
        error: Some("no".into()),
    };
    let value = Value::Json(b"42".to_vec());
    let finishes =
        vec![Finish::new(held[0], Transition::Succeed { value, keep: KEEP }), Finish::new(held[1], retry)];
    let more = player.turn(first, finishes, Some(claim(&["send", "other"], 2))).await;
    drop(ended);
    player.see("ended", player.again(|store| store.ended(key.clone())).await);
    // The end of the first has freed its key, which time held a while longer.
    player.hands.advance(secs(1));
    for number in 13..=14 {
        player.enqueue("q", vec![NewJob { due: Due::In(secs(60)), ..only_one(number) }]).await;
    }

    let killed = Transition::Kill { reason: DeadReason::Failures, error: Some("dead".into()) };
    let finishes = vec![
        Finish::new(held[2], succeed()),
        Finish::new(more[0], killed),
        Finish::new(LeaseId { run: 7, ..held[1] }, succeed()),
    ];
    player.turn(first, finishes, None).await;
    player.again(|store| store.retry(more[0].job)).await;
    player.again(|store| store.delete(JobId::from_bytes([7; 16]))).await;

    player.limit(of_task(), Change::Rates(None)).await;
    player.limit(of_task(), Change::MaxConcurrent(None)).await;
    let rest = player.turn(first, vec![], Some(claim(&["send"], 20))).await;

    // A sleeper that gives up, one that keeps the time, and one that is rung for.
    drop(player.asleep(second).await);
    player.catch_up().await;
    let wait = player.asleep(second).await;
    player.hands.advance(secs(3));
    let due = player.woken_claim(second, wait).await;
    let wait = player.asleep(second).await;
    player.enqueue("q", vec![given("send", 11)]).await;
    let rung = player.woken_claim(second, wait).await;
    let wait = player.asleep(second).await;
    let release = Finish::new(rung[0], Transition::Release);
    player.turn(second, vec![release], None).await;
    player.woken_claim(second, wait).await;

    player.schedule(second, 12).await;
    player.permits(first, &rest).await;
    player.look(&player.direct).await;
    // Leases lapse and are reaped, jobs are promoted and expire.
    for _ in 0..4 {
        player.hands.advance(secs(3));
        player.beat(second, &due).await;
    }
    player.beat(first, &rest).await;
    player.look(&player.direct).await;
    player.again(|store| store.retire(second)).await;
    player.limit(Scope::Queue(name("r")), Change::Paused(false)).await;
    player.hands.advance(secs(30));
    player.register(first, Some(2)).await;
    player.turn(worker(3), vec![], Some(claim(&["send", "other"], 50))).await;
    player.look(&player.store).await;
}

/// Plays the history once for each of its requests, or each of so many, with a cut there: `cuts` are lost one after the
/// other.
async fn sweep(cuts: &[Cut], most_unknown: u32, every: usize) {
    let server = Server::start();
    let proxy = Proxy::before(&server);
    // Once, so that the server knows the scripts, and once more as it should be.
    play(&Player::at(&proxy, &server).await).await;
    let whole = Player::at(&proxy, &server).await;
    let begun = proxy.requests();
    play(&whole).await;
    let requests = proxy.requests() - begun;
    let every = if std::env::var_os("FLEXIQ_SOAK").is_some() { 1 } else { every };
    for at in (1..=requests).step_by(every) {
        println!("at request {at} of {requests}");
        let player = Player::at(&proxy, &server).await;
        for (number, cut) in (proxy.requests() + at..).zip(cuts) {
            proxy.cut(number, *cut);
        }
        play(&player).await;
        let (whole_seen, seen) = (whole.seen.borrow(), player.seen.borrow());
        for (expected, seen) in whole_seen.iter().zip(seen.iter()) {
            assert_eq!(seen, expected, "{cuts:?} at request {at} of {requests}");
        }
        assert_eq!(seen.len(), whole_seen.len(), "{cuts:?} at request {at} of {requests}");
        // A repeated answer does not know which gates were passed: to be safe, a cap counts its runs.
        let safe = |(whole, seen): (&bool, &bool)| seen >= whole;
        assert!(whole.capped.borrow().iter().zip(player.capped.borrow().iter()).all(safe));
        assert!(player.unknown.get() <= most_unknown, "{cuts:?} at request {at} of {requests}");
        assert!(at + cuts.len() as u64 > requests || proxy.has_cut());
    }
}

#[tokio::test]
async fn one_lost_answer_is_not_noticed() {
    sweep(&[Cut::Answer], 0, 1).await;
}

#[tokio::test]
async fn of_two_lost_answers_the_caller_hears_and_can_ask_again() {
    sweep(&[Cut::Answer, Cut::Answer], 1, 2).await;
}

#[tokio::test]
async fn a_lost_answer_and_a_lost_request_can_be_asked_for_again() {
    sweep(&[Cut::Answer, Cut::Request], 1, 5).await;
}

#[tokio::test]
async fn what_was_lost_twice_before_it_arrived_can_be_asked_for_again() {
    sweep(&[Cut::Request, Cut::Request], 1, 2).await;
}

/// Two handles on one store: what the first says goes through the proxy.
async fn two_handles(proxy: &Proxy, server: &Server) -> (Bench, Bench, ManualClock) {
    let (clock, hands) = Clock::manual(START);
    let open = async |url: String| {
        let mut options = RedisOptions::from_url(&url).expect("the URL is one of Redis");
        options.clock = clock.clone();
        RedisStore::open(options).await.expect("the store opens")
    };
    let (first, second) = (open(proxy.url()).await, open(server.url()).await);
    (Bench::on(first).await, Bench::on(second).await, hands)
}

/// A worker falls asleep by the proxy and gives up, and the server never hears of its leaving.
async fn leave_unheard(bench: &Bench, proxy: &Proxy) {
    let (_, wait) = asleep(bench, &["send"]).await;
    for number in 1..=2 {
        proxy.cut(proxy.requests() + number, Cut::Request);
    }
    drop(wait);
    while !proxy.has_cut() {
        tokio::task::yield_now().await;
    }
    // Its handle connects anew, and listens again.
    bench.store.queues().await.expect("a call is sent until it is answered");
}

#[tokio::test]
async fn a_bell_that_is_handed_to_one_who_left_unheard_goes_to_another() {
    let server = Server::start();
    let proxy = Proxy::before(&server);
    let (first, second, _) = two_handles(&proxy, &server).await;
    leave_unheard(&first, &proxy).await;
    let (_, wait) = asleep(&second, &["send"]).await;
    second.enqueue(job("send")).await;
    assert_eq!(woken(wait).await, ["q"]);
}

#[tokio::test]
async fn the_time_is_not_left_to_one_who_left_unheard() {
    let server = Server::start();
    let proxy = Proxy::before(&server);
    let (first, second, hands) = two_handles(&proxy, &server).await;
    leave_unheard(&first, &proxy).await;
    let (_, mut wait) = asleep(&second, &["send"]).await;
    second.enqueue(NewJob { due: Due::In(secs(1)), ..job("send") }).await;
    assert!(second.is_pending(&mut wait).await);
    hands.advance(secs(1));
    assert_eq!(woken(wait).await, ["q"]);
}

/// Meets the ends of many connections: each time one call breaks its connection while another is being sent over it.
async fn meet_ends(proxy: &Proxy, rounds: usize) {
    let options = RedisOptions::from_url(&proxy.url()).expect("the URL is one of Redis");
    let store = RedisStore::open(options).await.expect("the store opens");
    for _ in 0..rounds {
        proxy.cut(proxy.requests() + 1, Cut::Request);
        let breaking = tokio::spawn({
            let store = store.clone();
            async move { store.queues().await }
        });
        while !proxy.has_cut() {
            tokio::task::yield_now().await;
        }
        store.queues().await.expect("it is sent again");
        breaking.await.expect("it does not panic").expect("it is sent again, too");
    }
}

#[test]
fn a_call_that_meets_the_end_of_its_connection_is_sent_again() {
    let rounds = if std::env::var_os("FLEXIQ_SOAK").is_some() { 400 } else { 40 };
    let server = Server::start();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.expect("a runtime starts").block_on(meet_ends(&Proxy::before(&server), rounds));
            });
        }
    });
}

#[tokio::test]
async fn what_may_have_been_done_is_not_said_to_be_undone_when_nobody_can_be_reached_any_more() {
    let server = Server::start();
    let proxy = Proxy::before(&server);
    let (first, second, _) = two_handles(&proxy, &server).await;
    first.enqueue(job("send")).await;
    proxy.cut(proxy.requests() + 1, Cut::Answer);
    proxy.shut();
    let batch = Enqueue { queue: name("q"), jobs: jobs("send", 1), max_pending: None, producer: None };
    let error = first.store.enqueue(batch).await.expect_err("nobody answers");
    assert!(matches!(error, Error::StoreUnavailable { effect: Effect::Unknown, .. }), "{error:?}");
    assert_eq!(second.counts("send").await.ready, 2);
}
