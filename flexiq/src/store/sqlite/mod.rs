//! The embedded store: one SQLite file, or a database in memory.
//!
//! One thread writes and commits many requests together; another reads. A file may be shared by several processes of
//! one host, and with the application's own tables. Bells are notifications inside the process; what another process
//! writes is noticed within 20 ms.

mod bells;
mod called;
mod cancel;
mod claim;
mod codes;
mod ended;
mod enqueue;
mod extend;
mod failure;
mod finish;
mod foreign;
mod guard;
mod heads;
mod house;
mod lanes;
mod ledger;
mod open;
mod options;
mod prune;
mod read;
mod reader;
mod register;
mod retention;
mod retry;
mod ticket;
mod turn;
mod wait;
mod write;
mod writer;

use std::fmt;
use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::oneshot;

pub use options::{Location, SqliteOptions, Synchronous};

use self::bells::Hub;
use self::failure::Tried;
use self::foreign::Foreign;
use self::reader::Reader;
use self::ticket::Asked;
use self::write::Write;
use self::writer::{Priority, Writer};
use super::{
    Beat, BeatAnswer, Cancelled, Counts, Enqueue, Enqueued, Filter, Hello, JobKey, Step, Store, Stored, Turn,
    TurnAnswer, Wait, Wake, WorkerId,
};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::job::{Job, JobId};
use crate::name::Name;

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
                let hub = Hub::of_file(path).map_err(|error| no_file(&place, error))?;
                let reader = Reader::start(open::open_reader(path, &place)?, place.clone())
                    .map_err(|error| no_thread(&place, error))?;
                (hub, Some(Foreign::default()), Some(reader))
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
                write.ledger.write(write.connection)?;
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
        self.write(Priority::Normal, move |write| enqueue::enqueue(write, &batch))
    }

    fn turn(&self, turn: Arc<Turn>) -> Step<'_, TurnAnswer> {
        self.write(Priority::Normal, move |write| turn::turn(write, Arc::unwrap_or_clone(turn)))
    }

    fn extend(&self, beat: Beat) -> Step<'_, BeatAnswer> {
        let awaited = self.hub.queues_awaited();
        self.write(Priority::First, move |write| extend::extend(write, beat, &awaited))
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

    fn list(&self, filter: Filter) -> Step<'_, Vec<Job>> {
        self.read(move |connection| read::list(connection, &filter))
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

    fn retry(&self, id: JobId) -> Step<'_, bool> {
        self.write(Priority::Normal, move |write| retry::retry(write, id))
    }

    fn delete(&self, id: JobId) -> Step<'_, bool> {
        self.write(Priority::Normal, move |write| retry::delete(write, id))
    }

    fn counts(&self) -> Step<'_, Counts> {
        self.read(read::counts)
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
