//! The stores that a history is played on: the model, and the real ones beside it, on one clock.

use std::fmt;
use std::sync::Arc;

#[cfg(feature = "redis")]
use flexiq::internals::redis::{RedisOptions, RedisStore};
use flexiq::internals::sqlite::{Location, SqliteOptions, SqliteStore, Synchronous};
use flexiq::internals::{Clock, ManualClock, Step, Store};
use flexiq::{Error, Result};
use flexiq_tests::{Manner, ModelStore, START};
use proptest::test_runner::TestCaseError;

/// Which stores a history is played on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Sqlite,
    #[cfg(feature = "redis")]
    Redis,
}

/// The model, and the real stores beside it.
pub(crate) struct Sides {
    pub(crate) hands: ManualClock,
    pub(crate) clock: Clock,
    pub(crate) model: Arc<dyn Store>,
    /// Each with its name.
    pub(crate) real: Vec<(&'static str, Arc<dyn Store>)>,
    /// What can be closed and opened again.
    lasting: Lasting,
}

/// Where a store lies that outlives its handles.
enum Lasting {
    File(tempfile::TempDir),
    #[cfg(feature = "redis")]
    Redis(String),
}

impl Sides {
    pub(crate) async fn open(kind: Kind) -> Self {
        let (clock, hands) = Clock::manual(START);
        let (manner, lasting) = match kind {
            Kind::Sqlite => {
                let folder = tempfile::tempdir().expect("the temporary folder can be written");
                (Manner::Sqlite, Lasting::File(folder))
            }
            #[cfg(feature = "redis")]
            Kind::Redis => (Manner::Redis, Lasting::Redis(flexiq_tests::redis_server::url())),
        };
        let model = ModelStore::like(manner, clock.clone());
        let mut sides = Self { hands, clock, model, real: Vec::new(), lasting };
        if kind == Kind::Sqlite {
            sides.real.push(("SQLite in memory", sides.sqlite(Location::Memory).await));
        }
        sides.real.push(sides.open_lasting().await);
        sides
    }

    /// Closes the store that lasts and opens it again.
    pub(crate) async fn reopen(&mut self) {
        self.real.pop();
        self.real.push(self.open_lasting().await);
    }

    async fn open_lasting(&self) -> (&'static str, Arc<dyn Store>) {
        match &self.lasting {
            Lasting::File(folder) => {
                let file = Location::File(folder.path().join("jobs.db"));
                ("SQLite in a file", self.sqlite(file).await)
            }
            #[cfg(feature = "redis")]
            Lasting::Redis(url) => {
                let mut options = RedisOptions::from_url(url).expect("the URL is one of Redis");
                options.clock = self.clock.clone();
                ("Redis", RedisStore::open(options).await.expect("the store opens"))
            }
        }
    }

    async fn sqlite(&self, location: Location) -> Arc<dyn Store> {
        let mut options = SqliteOptions::new(location);
        options.clock = self.clock.clone();
        // No power fails here.
        options.synchronous = Synchronous::Normal;
        SqliteStore::open(options).await.expect("the store opens")
    }

    /// Asks the same of every store; each must answer what the model answers.
    pub(crate) async fn ask<'a, T: PartialEq + fmt::Debug + 'a>(
        &'a self,
        verb: &str,
        ask: impl Fn(&'a dyn Store) -> Step<'a, T>,
    ) -> Result<std::result::Result<T, Refusal>, TestCaseError> {
        self.ask_alike(verb, ask, |answer| answer).await
    }

    /// Like [`ask`](Self::ask), where a store is free in something that `alike` evens out.
    pub(crate) async fn ask_alike<'a, T: PartialEq + fmt::Debug + 'a>(
        &'a self,
        verb: &str,
        ask: impl Fn(&'a dyn Store) -> Step<'a, T>,
        alike: impl Fn(T) -> T,
    ) -> Result<std::result::Result<T, Refusal>, TestCaseError> {
        let expected = ask(&*self.model).await.map(&alike).map_err(Refusal::from);
        for (name, store) in &self.real {
            let answer = ask(&**store).await.map(&alike).map_err(Refusal::from);
            if answer != expected {
                let (answer, expected) = (format!("{answer:#?}"), format!("{expected:#?}"));
                return Err(TestCaseError::fail(format!(
                    "{verb}: {name} (-) differs from the model (+)\n{}",
                    difference(&answer, &expected)
                )));
            }
        }
        Ok(expected)
    }
}

/// The lines from the first to the last in which two texts differ, and a few around them.
fn difference(answer: &str, expected: &str) -> String {
    const AROUND: usize = 12;
    let (answer, expected): (Vec<_>, Vec<_>) = (answer.lines().collect(), expected.lines().collect());
    let common = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| pairs.take_while(|(a, b)| a == b).count();
    let start = common(&mut answer.iter().zip(&expected));
    let shorter = answer.len().min(expected.len());
    let end = common(&mut answer.iter().rev().zip(expected.iter().rev())).min(shorter - start);
    let mut lines: Vec<String> = Vec::new();
    let mut show = |mark: char, part: &[&str]| lines.extend(part.iter().map(|line| format!("{mark}{line}")));
    show(' ', &answer[start.saturating_sub(AROUND)..start]);
    show('-', &answer[start..answer.len() - end]);
    show('+', &expected[start..expected.len() - end]);
    show(' ', &answer[answer.len() - end..][..end.min(AROUND)]);
    lines.join("\n")
}

/// What a caller can tell one refusal from another by. The words are each store's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Invalid { what: String },
    QueueFull { queue: String, max_pending: u64, pending: u64 },
    Other(String),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid { what, .. } => Self::Invalid { what },
            Error::QueueFull { queue, max_pending, pending } => {
                Self::QueueFull { queue, max_pending, pending }
            }
            other => Self::Other(other.to_string()),
        }
    }
}
