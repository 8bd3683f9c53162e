//! The embedded store: one SQLite file, or a database in memory.
//!
//! One thread writes and commits many requests together; another reads. A file may be shared by several processes of
//! one host, and with the application's own tables. Bells are notifications inside the process; what another process
//! writes is noticed within 20 ms.

mod admission;
mod bells;
mod call;
mod called;
mod cancel;
mod check;
mod claim;
mod codes;
mod declared;
mod ended;
mod enqueue;
mod explain;
mod extend;
mod failure;
mod file_id;
mod finish;
mod foreign;
mod gates;
mod guard;
mod heads;
mod house;
mod hub;
mod kept_schedule;
mod lanes;
mod ledger;
mod limits;
mod line;
mod list;
mod news;
mod open;
mod options;
mod partitions;
#[cfg(feature = "testing")]
mod peek;
mod permits;
mod prune;
mod read;
mod reader;
mod register;
mod replace;
mod retention;
mod retry;
mod room;
mod rooms;
mod samples;
mod schedules;
mod starts;
mod stats;
mod story;
mod ticket;
mod turn;
mod unique;
mod wait;
mod write;
mod writer;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::oneshot;

pub use options::{Location, SqliteOptions, Synchronous};

use self::failure::Tried;
use self::file_id::OpenedFile;
use self::foreign::Foreign;
use self::hub::Hub;
use self::reader::Reader;
use self::ticket::Asked;
use self::write::Write;
use self::writer::{Priority, Writer};
use super::{
    Ask, Asked as Acquired, Beat, BeatAnswer, Cancelled, Change, Counts, Enqueue, Enqueued, Explanation,
    Filter, Finding, FindingKind, GiveBack, Hello, JobKey, LONGEST_STAND, Page, Payload, Planning,
    ProducerId, Repair, Retried, Scope, Snapshot, Standby, Standing, Step, Store, Stored, Swept, Tell, Tick,
    Ticked, Turn, TurnAnswer, Wait, Wake, WorkerId,
};
use crate::clock::{Clock, Timestamp};
use crate::error::{Error, Result};
use crate::job::{Job, JobId, Story};
use crate::name::Name;

/// A check looks at all that is stored: its caller waits for the answer this long.
const LONGEST_CHECK: Duration = Duration::from_secs(60 * 60);

/// A store in one SQLite database.
pub struct SqliteStore {
    place: Arc<str>,
    options: SqliteOptions,
    hub: Arc<Hub>,
    writer: Writer,
    /// A database in memory has one connection, which the writer holds.
    reader: Option<Reader>,
}

impl SqliteStore {
    /// Opens a store, creating the file and its tables if there are none.
    ///
    /// # Errors
    ///
    /// [`Error::StoreRefused`] if the file cannot be used, naming it and what to change; [`Error::UnsupportedSchema`]
    /// if a newer flexiq has written it; [`Error::StoreUnavailable`] if another process holds it locked for 5 s.
    pub async fn open(options: SqliteOptions) -> Result<Arc<Self>> {
        // On a thread of its own: opening waits for the disk, and for other processes that open it.
        let (opened, answer) = oneshot::channel();
        std::thread::Builder::new()
            .name("flexiq-sqlite-open".into())
            .spawn(move || opened.send(Self::open_now(options)))
            .map_err(|error| no_thread("this process", error))?;
        answer.await.unwrap_or_else(|_| unreachable!("the thread that opens the store always answers"))
    }

    fn open_now(options: SqliteOptions) -> Result<Arc<Self>> {
        let place: Arc<str> = match &options.location {
            Location::Memory => "sqlite::memory:".into(),
            Location::File(path) => format!("sqlite://{}", path.display()).into(),
        };
        let connection = open::open_writer(&options, &place)?;
        let (hub, foreign, reader) = match &options.location {
            Location::Memory => (Arc::new(Hub::default()), None, None),
            Location::File(path) => {
                let file = OpenedFile::at(path).map_err(|error| no_file(&place, error))?;
                let reader = Reader::start(open::open_reader(path, &place)?, place.clone())
                    .map_err(|error| no_thread(&place, error))?;
                (Hub::of_file(file.id()), Some(Foreign::of(file)), Some(reader))
            }
        };
        let writer = Writer::start(connection, place.clone(), options.clock.clone(), hub.clone(), foreign)
            .map_err(|error| no_thread(&place, error))?;
        Ok(Arc::new(Self { place, options, hub, writer, reader }))
    }

    /// A verb that writes, under way.
    fn write<T, F>(&self, priority: Priority, verb: F) -> Step<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Write<'_>) -> Tried<T> + Send + 'static,
    {
        let asked = self.writer.ask(priority, verb);
        Box::pin(asked.within(self.options.timeout, &self.place))
    }

    /// A question, under way.
    fn read<T, F>(&self, read: F) -> Step<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let asked = self.ask(read);
        Box::pin(asked.within(self.options.timeout, &self.place))
    }

    fn ask<T, F>(&self, read: F) -> Asked<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        match &self.reader {
            Some(reader) => reader.ask(read),
            None => self.writer.ask(Priority::Normal, |write| {
                // Counters of this very transaction are not written yet.
                write.ledger.write(write.connection, write.lanes, write.now)?;
                Ok(read(write.connection)?)
            }),
        }
    }
}

fn no_thread(place: &str, error: std::io::Error) -> Error {
    Error::StoreRefused {
        store: place.into(),
        reason: "this process may start no more threads".into(),
        source: Some(error.into()),
    }
}

fn no_file(place: &str, error: std::io::Error) -> Error {
    Error::StoreRefused {
        store: place.into(),
        reason: "the file has gone while it was opened".into(),
        source: Some(error.into()),
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Store for SqliteStore {
    fn place(&self) -> &str {
        &self.place
    }

    fn clock(&self) -> &Clock {
        &self.options.clock
    }

    fn enqueue(&self, batch: Enqueue) -> Step<'_, Vec<Enqueued>> {
        let Some(producer) = batch.producer else {
            return self.write(Priority::Normal, move |write| enqueue::enqueue(write, &batch));
        };
        // Listen first, then look: room that comes in between is told.
        self.hub.rooms.enter(producer);
        let step = self.write(Priority::Normal, move |write| room::enqueue_or_stand(write, &batch, producer));
        Box::pin(async move {
            let stored = step.await??;
            self.hub.rooms.forget(producer);
            Ok(stored)
        })
    }

    fn room(&self, _queue: &Name, producer: ProducerId) -> Step<'_, ()> {
        Box::pin(async move {
            let told = self.hub.rooms.enter(producer);
            let _watch = self.hub.watch();
            self.writer.nudge();
            tokio::select! {
                () = told.notified() => {}
                () = self.options.clock.sleep(LONGEST_STAND) => {}
            }
            Ok(())
        })
    }

    fn leave_line(&self, _queue: &Name, producer: ProducerId) {
        if self.hub.rooms.forget(producer) {
            self.writer.ask(Priority::Normal, move |write| Ok(room::leave(write, producer)?)).leave();
        }
    }

    fn turn(&self, turn: Arc<Turn>) -> Step<'_, TurnAnswer> {
        let waiting = match &turn.claim {
            Some(claim) => self.hub.bells().waiting_for(&turn.queue, &claim.tasks),
            None => 0,
        };
        self.write(Priority::Normal, move |write| turn::turn(write, Arc::unwrap_or_clone(turn), waiting))
    }

    fn extend(&self, beat: Beat) -> Step<'_, BeatAnswer> {
        let awaited = self.hub.bells().queues_awaited();
        self.write(Priority::First, move |write| extend::extend(write, beat, &awaited))
    }

    fn tell(&self, tell: Tell) -> Step<'_, ()> {
        self.write(Priority::Normal, move |write| story::tell(write, &tell))
    }

    fn acquire(&self, ask: Ask) -> Step<'_, Acquired> {
        self.write(Priority::Normal, move |write| permits::acquire(write, &ask))
    }

    fn give_back(&self, permits: Vec<GiveBack>) -> Step<'_, ()> {
        self.write(Priority::Normal, move |write| permits::give_back(write, &permits))
    }

    fn wait(&self, wait: Wait) -> Step<'_, Wake> {
        Box::pin(async move {
            let _watch = self.hub.watch();
            self.writer.nudge();
            Ok(wait::wait(self.hub.clone(), self.options.clock.clone(), wait).await)
        })
    }

    fn called(&self, worker: WorkerId) -> Step<'_, ()> {
        Box::pin(async move {
            // Listen first, then look: a call in between is heard.
            let calls = self.hub.calls.listen(worker);
            let _watch = self.hub.watch();
            self.writer.nudge();
            if !self.read(move |connection| cancel::is_called(connection, worker)).await? {
                calls.notified().await;
            }
            Ok(())
        })
    }

    fn register(&self, hello: Hello) -> Step<'_, ()> {
        self.write(Priority::Normal, move |write| register::register(write, &hello))
    }

    fn retire(&self, worker: WorkerId) -> Step<'_, ()> {
        self.hub.forget(worker);
        self.write(Priority::Normal, move |write| register::retire(write, worker))
    }

    fn declarations(&self) -> Step<'_, Vec<(Name, String)>> {
        self.read(read::declarations)
    }

    fn queues(&self) -> Step<'_, Vec<Name>> {
        self.read(|connection| Ok(house::all_queues(connection)?.into_iter().map(|(_, name)| name).collect()))
    }

    fn job(&self, id: JobId) -> Step<'_, Option<Job>> {
        self.read(move |connection| read::job(connection, id))
    }

    fn story(&self, id: JobId) -> Step<'_, Option<Story>> {
        self.read(move |connection| story::story(connection, id))
    }

    fn payload(&self, id: JobId) -> Step<'_, Option<Payload>> {
        self.read(move |connection| read::payload(connection, id))
    }

    fn list(&self, filter: Filter) -> Step<'_, Page> {
        self.read(move |connection| list::list(connection, &filter))
    }

    fn ended(&self, key: JobKey) -> Step<'_, Option<Stored>> {
        Box::pin(async move {
            let _watch = self.hub.watch();
            // Join first, then look: an end in between is told.
            let told = Awaited { hub: &self.hub, job: key.id, told: self.hub.ends.enter(key.id) };
            self.writer.nudge();
            let there = self.read(move |connection| read::job(connection, key.id)).await?;
            match there {
                None => Ok(None),
                Some(job) if job.queue != *key.queue => Ok(None),
                Some(job) if job.state.is_ended() => {
                    self.read(move |connection| read::stored(connection, key.id)).await
                }
                Some(_) => Ok(told.end().await),
            }
        })
    }

    fn cancel(&self, id: JobId) -> Step<'_, Option<Cancelled>> {
        self.write(Priority::Normal, move |write| cancel::cancel(write, id))
    }

    fn cancel_partition(&self, task: Name, partition: String) -> Step<'_, Swept> {
        self.write(Priority::Normal, move |write| cancel::cancel_partition(write, &task, &partition))
    }

    fn retry(&self, id: JobId) -> Step<'_, Retried> {
        self.write(Priority::Normal, move |write| retry::retry(write, id))
    }

    fn delete(&self, id: JobId) -> Step<'_, bool> {
        self.write(Priority::Normal, move |write| retry::delete(write, id))
    }

    fn limit(&self, scope: Scope, change: Change) -> Step<'_, ()> {
        self.write(Priority::Normal, move |write| limits::limit(write, &scope, &change))
    }

    fn limits(&self) -> Step<'_, Vec<Standing>> {
        self.read(limits::limits)
    }

    fn schedule(&self, queue: Name, name: Name, planning: Planning) -> Step<'_, ()> {
        self.write(Priority::Normal, move |write| schedules::schedule(write, &queue, &name, planning))
    }

    fn schedules(&self) -> Step<'_, Vec<Standby>> {
        self.read(kept_schedule::all)
    }

    fn tick(&self, tick: Tick) -> Step<'_, Ticked> {
        self.write(Priority::Normal, move |write| schedules::tick(write, tick))
    }

    fn explain(&self, id: JobId) -> Step<'_, Option<Explanation>> {
        let now = self.options.clock.now();
        self.read(move |connection| explain::explain(connection, now, id))
    }

    fn counts(&self) -> Step<'_, Counts> {
        self.read(read::counts)
    }

    fn stats(&self) -> Step<'_, Snapshot> {
        let now = self.options.clock.now();
        self.read(move |connection| stats::stats(connection, now))
    }

    fn check(&self, repair: Repair) -> Step<'_, Vec<Finding>> {
        Box::pin(async move {
            if let Location::File(path) = &self.options.location {
                let found = check::look_at_file(path, self.place.clone(), self.options.clock.clone()).await?;
                // A damaged file would only be damaged further.
                let is_damaged = found.iter().any(|finding| finding.kind == FindingKind::File);
                if found.is_empty() || is_damaged || !repair.is_wanted() {
                    return Ok(found);
                }
            }
            let asked = self.writer.ask(Priority::Normal, move |write| check::check(write, repair));
            asked.within(LONGEST_CHECK, &self.place).await
        })
    }

    fn keep_sample(&self, after: Option<Timestamp>, text: String) -> Step<'_, bool> {
        self.write(Priority::Normal, move |write| samples::keep_sample(write, after, &text))
    }
}

/// Someone who waits for the end of a job, and is forgotten when this is dropped.
struct Awaited<'a> {
    hub: &'a Hub,
    job: JobId,
    told: oneshot::Receiver<Stored>,
}

impl Awaited<'_> {
    async fn end(mut self) -> Option<Stored> {
        // The sender goes only with the end of the job, or with the hub itself.
        (&mut self.told).await.ok()
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.told.close();
        self.hub.ends.sweep(self.job);
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;
    use crate::error::Effect;
    use crate::job::{Due, Transition, Value};
    use crate::policy::Rate;
    use crate::store::{Claim, Finish, Finished, LeaseId, NewJob, Outset, Payload, PermitId, Room};

    const LEASE: Duration = Duration::from_secs(10);

    fn name(text: &str) -> Name {
        Name::new("test", text).expect("tests use valid names")
    }

    fn batch(task: &str, jobs: usize, bytes: usize) -> Enqueue {
        let job = |_| NewJob {
            id: JobId::new(),
            is_given: false,
            task: name(task),
            partition: String::new(),
            max_pending_per_partition: None,
            payload: Payload { codec: 0, bytes: vec![b' '; bytes] },
            priority: 0,
            due: Due::NOW,
            expires: None,
            outset: Outset::default(),
            unique: None,
        };
        Enqueue { queue: name("q"), jobs: (0..jobs).map(job).collect(), max_pending: None, producer: None }
    }

    fn turn(number: u64, finishes: Vec<Finish>, most: u32) -> Turn {
        let room = Room { task: name("free"), slot: 0, at_most: u32::MAX, max_losses: 3 };
        let claim = Claim { slots: vec![most], tasks: vec![room], lease: LEASE };
        let worker = WorkerId::from_bytes([7; 16]);
        Turn { worker, queue: name("q"), number, finishes, claim: Some(claim) }
    }

    async fn in_memory() -> Arc<SqliteStore> {
        SqliteStore::open(SqliteOptions::new(Location::Memory)).await.expect("the store opens")
    }

    /// Steps of SQLite's machine that the statements of claims have taken since the last call.
    async fn claim_steps(store: &SqliteStore) -> i32 {
        let asked = store.writer.ask(Priority::Normal, |write| {
            let mut steps = 0;
            for sql in [
                include_str!("sql/claim_lanes.sql"),
                include_str!("sql/claim_heads.sql"),
                include_str!("sql/claim_job.sql"),
                include_str!("sql/claim_lease.sql"),
                include_str!("sql/house_moments.sql"),
                include_str!("sql/gate.sql"),
            ] {
                steps += write.connection.prepare_cached(sql)?.reset_status(StatementStatus::VmStep);
            }
            Ok(steps)
        });
        asked.within(store.options.timeout, &store.place).await.expect("the store answers")
    }

    #[tokio::test]
    async fn the_cost_of_a_claim_does_not_depend_on_what_else_waits() {
        let mut costs = Vec::new();
        for others in [1, 10] {
            let store = in_memory().await;
            for _ in 0..others {
                store.enqueue(batch("blocked", 1_000, 2)).await.expect("stored");
                store.enqueue(batch("free", 1_000, 2)).await.expect("stored");
                let mut later = batch("free", 1_000, 2);
                later.jobs.iter_mut().for_each(|job| job.due = Due::In(LEASE * 100));
                store.enqueue(later).await.expect("stored");
            }
            claim_steps(&store).await;
            let claimed = store.turn(Arc::new(turn(1, vec![], 10))).await.expect("answers").claimed;
            assert_eq!(claimed.len(), 10);
            costs.push(claim_steps(&store).await);
        }
        assert!(costs[0] > 100 && costs[0] == costs[1], "{costs:?}");
    }

    /// Steps of SQLite's machine that the questions of people have taken since this was asked last.
    async fn look_steps(store: &SqliteStore) -> i32 {
        let asked = store.writer.ask(Priority::Normal, |write| {
            let mut steps = 0;
            for sql in [
                include_str!("sql/read_counts.sql"),
                include_str!("sql/read_job.sql"),
                include_str!("sql/explain_behind.sql"),
                include_str!("sql/running.sql"),
                include_str!("sql/explain_workers.sql"),
            ] {
                steps += write.connection.prepare_cached(sql)?.reset_status(StatementStatus::VmStep);
            }
            Ok(steps)
        });
        asked.within(store.options.timeout, &store.place).await.expect("the store answers")
    }

    #[tokio::test]
    async fn a_look_costs_the_same_however_much_waits() {
        let mut costs = Vec::new();
        for thousands in [2, 20] {
            // Whether two are of one moment costs a step.
            let mut options = SqliteOptions::new(Location::Memory);
            options.clock = Clock::manual(Timestamp::from_millis(1_700_000_000_000)).0;
            let store = SqliteStore::open(options).await.expect("the store opens");
            store.limit(Scope::Task(name("free")), Change::MaxConcurrent(Some(1))).await.expect("set");
            let mut last = None;
            for _ in 0..thousands {
                let stored = store.enqueue(batch("free", 1_000, 2)).await.expect("stored");
                last = stored.last().map(|stored| stored.id);
                let mut parted = batch("parted", 100, 2);
                parted.jobs.iter_mut().for_each(|job| job.partition = job.id.to_string());
                store.enqueue(parted).await.expect("stored");
            }
            store.turn(Arc::new(turn(1, vec![], 1))).await.expect("answers");
            look_steps(&store).await;
            let counts = store.counts().await.expect("answers");
            assert_eq!(counts.tasks[0].ready, thousands * 1_000 - 1);
            let told =
                store.explain(last.expect("jobs were stored")).await.expect("answers").expect("it is there");
            assert!(told.causes.contains(&crate::store::Cause::Behind { jobs: 1_000, outranked: false }));
            costs.push(look_steps(&store).await);
        }
        assert!(costs[0] > 100 && costs[0] == costs[1], "{costs:?}");
    }

    /// SQLite's steps in what an ask for a permit reads of the line, since this was asked last.
    async fn ask_steps(store: &SqliteStore) -> i32 {
        let asked = store.writer.ask(Priority::Normal, |write| {
            let mut steps = 0;
            for sql in [
                include_str!("sql/line_first.sql"),
                include_str!("sql/line_last.sql"),
                include_str!("sql/line_reserved.sql"),
            ] {
                steps += write.connection.prepare_cached(sql)?.reset_status(StatementStatus::VmStep);
            }
            Ok(steps)
        });
        asked.within(store.options.timeout, &store.place).await.expect("the store answers")
    }

    #[tokio::test]
    async fn an_ask_for_a_permit_costs_the_same_however_long_the_line() {
        let ask = || Ask {
            permit: PermitId {
                limit: name("api"),
                key: String::new(),
                lease: LeaseId { job: JobId::new(), run: 1 },
            },
            queue: name("q"),
            ready_at: Timestamp::from_millis(0),
            max_concurrent: Some(1),
            rates: Vec::new(),
            lease: LEASE,
        };
        let mut costs = Vec::new();
        for line in [10, 1_000] {
            let store = in_memory().await;
            for _ in 0..line {
                store.acquire(ask()).await.expect("it is answered");
            }
            ask_steps(&store).await;
            store.acquire(ask()).await.expect("it is answered");
            costs.push(ask_steps(&store).await);
        }
        assert!(costs[0] > 50 && costs[0] == costs[1], "{costs:?}");
    }

    #[tokio::test]
    async fn a_lane_behind_a_shut_gate_costs_a_claim_one_look_whatever_its_length() {
        let mut costs = Vec::new();
        for others in [1, 10] {
            let store = in_memory().await;
            store.limit(Scope::Task(name("blocked")), Change::MaxConcurrent(Some(3))).await.expect("set");
            let both = |number, most| {
                let mut turn = turn(number, vec![], most);
                let claim = turn.claim.as_mut().expect("it claims");
                claim.tasks.push(Room { task: name("blocked"), ..claim.tasks[0].clone() });
                turn
            };
            store.enqueue(batch("blocked", 3, 2)).await.expect("stored");
            assert_eq!(store.turn(Arc::new(both(1, 10))).await.expect("answers").claimed.len(), 3);
            for _ in 0..others {
                store.enqueue(batch("blocked", 1_000, 2)).await.expect("stored");
            }
            store.enqueue(batch("free", 20, 2)).await.expect("stored");
            claim_steps(&store).await;
            let claimed = store.turn(Arc::new(both(2, 10))).await.expect("answers").claimed;
            assert!(claimed.len() == 10 && claimed.iter().all(|claimed| *claimed.task == *"free"));
            costs.push(claim_steps(&store).await);
        }
        assert!(costs[0] > 100 && costs[0] == costs[1], "{costs:?}");
    }

    #[tokio::test]
    async fn the_log_of_a_rate_keeps_no_more_than_its_window_and_a_row_for_all_that_start_together() {
        let (clock, hands) = Clock::manual(Timestamp::from_millis(1_700_000_000_000));
        let mut options = SqliteOptions::new(Location::Memory);
        options.clock = clock;
        let store = SqliteStore::open(options).await.expect("the store opens");
        let rate = |text: &str| text.parse().expect("a rate");
        let change = Change::Rates(Some(vec![rate("1000/s"), rate("100000/h")]));
        store.limit(Scope::Task(name("free")), change).await.expect("set");
        store.enqueue(batch("free", 100, 2)).await.expect("stored");
        for number in 1..=4 {
            store.turn(Arc::new(turn(number, vec![], 25))).await.expect("answers");
        }
        let rows = async || {
            let asked = store.writer.ask(Priority::Normal, |write| {
                let sum = "SELECT count(*), sum(starts) FROM flexiq_starts";
                Ok(write.connection.query_row(sum, [], |row| Ok((row.get(0)?, row.get(1)?)))?)
            });
            let rows: (i64, i64) = asked.within(store.options.timeout, &store.place).await.expect("answers");
            rows
        };
        assert_eq!(rows().await, (4, 100));
        let change =
            Change::Rates(Some(vec![Rate { starts: 9, period: Duration::from_millis(1), spread: false }]));
        store.limit(Scope::Task(name("free")), change).await.expect("set");
        for number in 5..=9 {
            store.enqueue(batch("free", 1, 2)).await.expect("stored");
            hands.advance(Duration::from_millis(1));
            store.turn(Arc::new(turn(number, vec![], 1))).await.expect("answers");
        }
        assert_eq!(rows().await, (1, 1), "what no window counts is forgotten");
    }

    #[tokio::test]
    async fn a_full_disk_stores_nothing_and_the_store_goes_on_when_there_is_space() {
        let store = in_memory().await;
        store.enqueue(batch("free", 10, 2)).await.expect("stored");
        let held = store.turn(Arc::new(turn(1, vec![], 10))).await.expect("answers").claimed;
        let limit = async |pages: Option<u32>| {
            let asked = store.writer.ask(Priority::Normal, move |write| {
                let used: u32 = write.connection.query_row("PRAGMA page_count", [], |row| row.get(0))?;
                let most = pages.map_or(1_000_000, |pages| used + pages);
                Ok(write.connection.query_row(&format!("PRAGMA max_page_count = {most}"), [], |_| Ok(()))?)
            });
            asked.within(store.options.timeout, &store.place).await.expect("the store answers");
        };
        limit(Some(20)).await;
        let error = store.enqueue(batch("free", 100, 100_000)).await.expect_err("there is no space");
        assert!(matches!(error, Error::StoreRefused { .. }), "{error:?}");
        assert!(error.to_string().contains("is full"), "{error}");
        let counts = async || store.counts().await.expect("answers").tasks[0].clone();
        assert_eq!((counts().await.ready, counts().await.running), (0, 10));

        // What is there can still be finished, and more be stored once there is space.
        let succeed = || Transition::Succeed { value: Value::Unit, keep: LEASE };
        let finishes = held.iter().map(|held| Finish::new(held.lease, succeed())).collect();
        let answer = store.turn(Arc::new(turn(2, finishes, 10))).await.expect("answers");
        assert_eq!(answer.finished, [Finished::Done; 10]);
        limit(None).await;
        store.enqueue(batch("free", 100, 100_000)).await.expect("stored");
        assert_eq!(counts().await.ready, 100);
    }

    #[tokio::test]
    async fn requests_beside_one_that_fills_the_disk_are_told_what_became_of_them() {
        let store = in_memory().await;
        let limit = store.writer.ask(Priority::Normal, |write| {
            Ok(write.connection.query_row("PRAGMA max_page_count = 60", [], |_| Ok(()))?)
        });
        limit.within(store.options.timeout, &store.place).await.expect("the store answers");
        let calls: Vec<_> = (0..20)
            .map(|number| store.enqueue(batch("free", 1, if number == 10 { 10_000_000 } else { 2 })))
            .collect();
        let mut stored = 0;
        for call in calls {
            match call.await {
                Ok(_) => stored += 1,
                Err(Error::StoreRefused { .. } | Error::StoreUnavailable { effect: Effect::None, .. }) => {}
                Err(other) => panic!("{other:?}"),
            }
        }
        assert_eq!(store.counts().await.expect("answers").tasks[0].ready, stored);
    }
}
