//! The one thread that writes: it takes what requests are there and commits them together.
//!
//! One sync of the disk then serves many callers. Each request has a savepoint of its own, so that one that is refused
//! undoes only itself; answers go out after the commit, and a commit that fails fails them all. Between requests, and
//! only while someone waits, it looks whether another process has written.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::failure::{Failure, Tried, again, explain, is_busy};
use super::foreign::Foreign;
use super::hub::Hub;
use super::lanes::Lanes;
use super::ledger::{Ledger, Left};
use super::news::News;
use super::ticket::{Asked, Ticket};
use super::unique;
use super::write::Write;
use crate::clock::Clock;
use crate::error::{Effect, Result};

/// A transaction takes in no further request after this long, so that none waits long for the others' commit.
const LONGEST_GROUP: Duration = Duration::from_millis(20);

/// The handle on the writer thread. The thread ends when the last handle is gone and all requests are answered.
#[derive(Debug)]
pub(super) struct Writer {
    desk: Arc<Desk>,
}

/// Who goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Priority {
    /// Heartbeats: a lease is lost if they are late.
    First,
    Normal,
}

/// Where requests wait for the writer.
#[derive(Default)]
struct Desk {
    waiting: Mutex<Waiting>,
    came: Condvar,
}

#[derive(Default)]
struct Waiting {
    first: VecDeque<Box<dyn Request>>,
    normal: VecDeque<Box<dyn Request>>,
    is_closed: bool,
    is_nudged: bool,
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Desk")
    }
}

impl Desk {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing panics while it is held but an allocation that fails; a queue of requests is whole at every moment.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn next(&mut self) -> Option<Box<dyn Request>> {
        self.first.pop_front().or_else(|| self.normal.pop_front())
    }

    fn take(&mut self) -> Vec<Box<dyn Request>> {
        self.first.drain(..).chain(self.normal.drain(..)).collect()
    }

    fn is_empty(&self) -> bool {
        self.first.is_empty() && self.normal.is_empty()
    }

    fn drop_abandoned(&mut self) {
        self.first.retain(|request| !request.is_abandoned());
        self.normal.retain(|request| !request.is_abandoned());
    }
}

impl Writer {
    /// Starts the thread. `foreign` looks for what other processes write; a database in memory has none.
    pub(super) fn start(
        connection: Connection,
        place: Arc<str>,
        clock: Clock,
        hub: Arc<Hub>,
        foreign: Option<Foreign>,
    ) -> std::io::Result<Self> {
        let desk = Arc::new(Desk::default());
        let seen = desk.clone();
        thread::Builder::new().name("flexiq-sqlite".into()).spawn(move || {
            Office { connection, place, clock, hub, foreign, lanes: Lanes::default(), desk: seen }.run();
        })?;
        Ok(Self { desk })
    }

    /// Hands a verb to the thread.
    pub(super) fn ask<T, F>(&self, priority: Priority, verb: F) -> Asked<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Write<'_>) -> Tried<T> + Send + 'static,
    {
        let ticket = Arc::new(Ticket::default());
        let (reply, answer) = oneshot::channel();
        let request =
            Box::new(Verb { ticket: ticket.clone(), verb: Some(verb), answer: None, reply: Some(reply) });
        let mut waiting = self.desk.lock();
        match priority {
            Priority::First => waiting.first.push_back(request),
            Priority::Normal => waiting.normal.push_back(request),
        }
        drop(waiting);
        self.desk.came.notify_one();
        Asked { ticket, answer }
    }

    /// Makes the thread see that someone waits now.
    pub(super) fn nudge(&self) {
        self.desk.lock().is_nudged = true;
        self.desk.came.notify_one();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.desk.lock().is_closed = true;
        self.desk.came.notify_one();
    }
}

/// A request, whatever it answers.
trait Request: Send {
    fn is_abandoned(&self) -> bool;
    /// Begins it; false if its caller has given up.
    fn begin(&self) -> bool;
    /// Carries it out. On an error, what it wrote must be undone, and it answers that error.
    fn run(&mut self, write: &mut Write<'_>) -> Result<(), Option<rusqlite::Error>>;
    /// Answers, after the commit or after it failed.
    fn reply(self: Box<Self>, committed: &Result<(), rusqlite::Error>, place: &str);
}

struct Verb<T, F> {
    ticket: Arc<Ticket>,
    verb: Option<F>,
    answer: Option<Tried<T>>,
    reply: Option<oneshot::Sender<Result<T>>>,
}

impl<T, F> Request for Verb<T, F>
where
    T: Send,
    F: FnOnce(&mut Write<'_>) -> Tried<T> + Send,
{
    fn is_abandoned(&self) -> bool {
        self.ticket.is_abandoned()
    }

    fn begin(&self) -> bool {
        self.ticket.begin()
    }

    fn run(&mut self, write: &mut Write<'_>) -> Result<(), Option<rusqlite::Error>> {
        let Some(verb) = self.verb.take() else { return Ok(()) };
        // What a verb has ended gives up its unique key in the same step.
        let answer = verb(write).and_then(|answer| {
            unique::free_ended(write)?;
            Ok(answer)
        });
        let failed = match &answer {
            Ok(_) => Ok(()),
            Err(Failure::Driver(error)) => Err(Some(again(error))),
            Err(Failure::Refused(_)) => Err(None),
        };
        self.answer = Some(answer);
        failed
    }

    fn reply(mut self: Box<Self>, committed: &Result<(), rusqlite::Error>, place: &str) {
        let Some(reply) = self.reply.take() else { return };
        let answer = match (self.answer, committed) {
            (Some(Ok(answer)), Ok(())) => Ok(answer),
            (Some(Ok(_)) | None, Err(error)) => Err(explain(again(error), place, commit_effect(error))),
            (Some(Err(failure)), _) => Err(failure.into_error(place)),
            // Its transaction was never begun: dropping the sender says so.
            (None, Ok(())) => return,
        };
        // A caller that gave up meanwhile has been told that the effect is unknown.
        let _ = reply.send(answer);
    }
}

/// What a failed commit has left. A full disk or a lock leaves nothing; after a failed write or sync, SQLite's own
/// rollback may be undone by what the disk has kept, so nobody can say.
fn commit_effect(error: &rusqlite::Error) -> Effect {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::SystemIoFailure) => Effect::Unknown,
        _ => Effect::None,
    }
}

/// What one transaction has carried out.
struct Group {
    requests: Vec<Box<dyn Request>>,
    news: Vec<News>,
    left: Left,
}

/// The writer thread and all that it holds.
struct Office {
    connection: Connection,
    place: Arc<str>,
    clock: Clock,
    hub: Arc<Hub>,
    foreign: Option<Foreign>,
    lanes: Lanes,
    desk: Arc<Desk>,
}

impl Office {
    fn run(mut self) {
        self.look_abroad();
        while self.wait_for_requests() {
            self.look_abroad();
            if self.desk.lock().is_empty() {
                continue;
            }
            // Bells that are rung from here on may be news that this transaction does not see.
            let tick = self.hub.bells().tick();
            if let Err(error) = self.begin() {
                // Busy is said only when nobody waits any more.
                if !is_busy(&error) {
                    self.refuse_all(&error);
                }
                continue;
            }
            let (group, committed) = self.transact();
            if committed.is_ok() {
                self.tell(tick, group.news, &group.left);
            }
            for request in group.requests {
                request.reply(&committed, &self.place);
            }
        }
    }

    /// Waits until there is a request; false when the last handle is gone. Returns now and then, too, while someone
    /// waits for what another process may write.
    fn wait_for_requests(&self) -> bool {
        let mut waiting = self.desk.lock();
        loop {
            if !waiting.is_empty() {
                return true;
            }
            if waiting.is_closed {
                return false;
            }
            if std::mem::take(&mut waiting.is_nudged) {
                return true;
            }
            match &self.foreign {
                Some(foreign) if self.hub.is_watched() => {
                    let (guard, time) = self
                        .desk
                        .came
                        .wait_timeout(waiting, foreign.next_look())
                        .unwrap_or_else(PoisonError::into_inner);
                    waiting = guard;
                    if time.timed_out() {
                        return true;
                    }
                }
                _ => waiting = self.desk.came.wait(waiting).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Rings for what another process has made startable.
    fn look_abroad(&mut self) {
        if let Some(foreign) = &mut self.foreign
            && let Err(error) = foreign.look(&self.connection, &mut self.lanes, &self.hub, self.clock.now())
            && !is_busy(&error)
        {
            tracing::warn!(store = %self.place, %error, "cannot see what other processes store");
        }
    }

    /// Opens the transaction, as long as anyone waits for it: another process may hold the file for minutes.
    fn begin(&self) -> rusqlite::Result<()> {
        if let Some(foreign) = &self.foreign {
            foreign.check_file()?;
        }
        loop {
            match self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([]) {
                Err(error) if is_busy(&error) => {
                    let mut waiting = self.desk.lock();
                    // Their callers have been told that nothing was stored.
                    waiting.drop_abandoned();
                    if waiting.is_empty() {
                        return Err(error);
                    }
                }
                other => return other.map(drop),
            }
        }
    }

    /// Carries out what is there, and commits.
    fn transact(&mut self) -> (Group, rusqlite::Result<()>) {
        let start = Instant::now();
        let mut ledger = Ledger::default();
        let mut requests = Vec::new();
        let mut all_news = Vec::new();
        let mut outcome = Ok(());
        while outcome.is_ok() && (requests.is_empty() || start.elapsed() < LONGEST_GROUP) {
            let Some(mut request) = self.desk.lock().next() else { break };
            if !request.begin() {
                continue;
            }
            match self.run_one(&mut *request, &mut ledger, requests.is_empty()) {
                Ok(news) => all_news.extend(news),
                Err(error) => outcome = Err(error),
            }
            requests.push(request);
        }
        let committed = outcome
            .and_then(|()| ledger.write(&self.connection, &mut self.lanes, self.clock.now()))
            .and_then(|()| self.connection.prepare_cached("COMMIT")?.execute([]).map(drop));
        if committed.is_err() {
            self.lanes.forget();
            if !self.connection.is_autocommit()
                && let Err(error) = self.connection.execute_batch("ROLLBACK")
            {
                tracing::error!(store = %self.place, %error, "cannot roll back");
            }
        }
        (Group { requests, news: all_news, left: ledger.left }, committed)
    }

    /// Carries out one request; an error means that the whole transaction is gone.
    ///
    /// The first needs no savepoint: the transaction itself can be undone. That spares a large turn, which mostly is
    /// alone, the copies of all pages that SQLite keeps for a savepoint.
    fn run_one(
        &mut self,
        request: &mut dyn Request,
        ledger: &mut Ledger,
        is_first: bool,
    ) -> rusqlite::Result<Option<News>> {
        if !is_first {
            self.connection.prepare_cached("SAVEPOINT flexiq")?.execute([])?;
        }
        let before = ledger.clone();
        let mut news = News::default();
        let mut write = Write {
            connection: &self.connection,
            now: self.clock.now(),
            lanes: &mut self.lanes,
            ledger,
            news: &mut news,
        };
        let Err(error) = request.run(&mut write) else {
            if !is_first {
                self.connection.prepare_cached("RELEASE flexiq")?.execute([])?;
            }
            return Ok(Some(news));
        };
        *ledger = before;
        self.lanes.forget();
        if self.connection.is_autocommit() {
            // A full disk, for one, makes SQLite undo the whole transaction by itself.
            return Err(error.unwrap_or(rusqlite::Error::InvalidQuery));
        }
        let undo = if is_first { "ROLLBACK; BEGIN IMMEDIATE" } else { "ROLLBACK TO flexiq; RELEASE flexiq" };
        self.connection.execute_batch(undo)?;
        Ok(None)
    }

    /// Tells those who wait what has been committed.
    fn tell(&mut self, tick: u64, all_news: Vec<News>, left: &Left) {
        let now = self.clock.now();
        for news in all_news {
            if let Err(error) = self.hub.tell(tick, news, now, &self.connection, &mut self.lanes) {
                // Whoever waits is woken by the next beat instead.
                tracing::warn!(store = %self.place, %error, "cannot ring for what was stored");
            }
        }
        if let Err(error) = self.hub.rooms.look_at(left, &self.connection, &mut self.lanes, now) {
            // They come again by themselves.
            tracing::warn!(store = %self.place, %error, "cannot tell producers of the room that there is");
        }
    }

    /// Answers all that wait now with the error that let no transaction begin.
    fn refuse_all(&self, error: &rusqlite::Error) {
        let refused = self.desk.lock().take();
        for request in refused {
            if request.begin() {
                request.reply(&Err(again(error)), &self.place);
            }
        }
    }
}
