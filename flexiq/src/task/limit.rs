//! Named limits: what a body asks for in the middle of its run, because several tasks share it or only the run knows it.
//!
//! What is asked is checked here; who grants it stands above, and is reached through [`Grants`].

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use super::keys::{Key, key_text, partition_name};
use super::{Context, Retry};
use crate::error::{Error, Result};
use crate::job::Due;
use crate::name::Name;
use crate::policy::{Rate, SHORTEST_DEFERRAL, notation};

/// A limit that a body names, in the making: [`Context::limit`] begins it, [`acquire`](Self::acquire) asks.
#[must_use = "nothing is asked before `.acquire().await`"]
#[derive(Debug)]
pub struct Limit<'a> {
    context: &'a Context,
    wanted: Result<Wanted>,
}

/// A permit that is wanted.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) name: Name,
    pub(crate) key: String,
    pub(crate) max_concurrent: Option<u32>,
    pub(crate) rates: Vec<Rate>,
}

/// Grants permits to one run.
pub(crate) trait Grants: fmt::Debug + Send + Sync {
    /// Asks for a permit; answers how it is given back.
    fn acquire(&self, wanted: Wanted) -> Asking<'_>;
}

pub(crate) type Asking<'a> = Pin<Box<dyn Future<Output = Result<GivesBack, Retry>> + Send + 'a>>;

/// Gives a permit back; nobody is granted one for as long as it is told to hold. What it answers is ready when the store
/// knows, and need not be waited for.
pub(crate) type GivesBack = Box<dyn FnOnce(Option<Duration>) -> Returning + Send + Sync>;

pub(crate) type Returning = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Context {
    /// Begins to ask for a permit of a limit that several tasks or queues share, or that is known only while running.
    ///
    /// The name is as that of a task: 1 to 100 of `A-Z a-z 0-9 _ . -`. It needs no declaration, and counts on the whole
    /// fleet, whatever task or queue asks.
    ///
    /// ```
    /// # use flexiq::{Context, Retry};
    /// /// Tells a partner, who allows five calls at once for each account, and 100 a minute.
    /// #[flexiq::task]
    /// async fn notify_partner(#[context] context: Context, account: u64) -> Result<(), Retry> {
    ///     let _permit =
    ///         context.limit("partner-api").key(&account).concurrency(5).rate("100/m").acquire().await?;
    ///     // ...the call; the permit is given back when it is dropped.
    ///     Ok(())
    /// }
    /// # #[tokio::main] async fn main() { notify_partner(Context::for_test(), 7).await.unwrap() }
    /// ```
    #[doc(alias = "throttle")]
    #[doc(alias = "semaphore")]
    pub fn limit(&self, name: impl AsRef<str>) -> Limit<'_> {
        let wanted = Name::new("limit", name).map(|name| Wanted {
            name,
            key: String::new(),
            max_concurrent: None,
            rates: Vec::new(),
        });
        Limit { context: self, wanted }
    }
}

impl Limit<'_> {
    /// Makes each value of a key a limit of its own: an account, or several values as a tuple. A string is taken bare,
    /// everything else as JSON; at most 200 bytes.
    pub fn key<K: Key + ?Sized>(self, key: &K) -> Self {
        self.and(|wanted| {
            let what = || format!("key of limit {}", wanted.name);
            wanted.key = partition_name(what, key_text(what(), key)?)?;
            Ok(())
        })
    }

    /// Grants a permit while fewer than `permits` are held. Callers that name different numbers are each checked against
    /// their own.
    pub fn concurrency(self, permits: u32) -> Self {
        self.and(|wanted| {
            wanted.max_concurrent = Some(permits);
            if permits > 0 {
                Ok(())
            } else {
                Err(invalid(&wanted.name, "0 permits".into(), "1 or more".into()))
            }
        })
    }

    /// Grants at most so many permits in any period, such as `"100/m"`, or several: `"10/s, 1000/h"`; `"100/m spread"`
    /// spaces them evenly. Permits that are asked for without a rate are not counted.
    pub fn rate(self, rate: impl AsRef<str>) -> Self {
        self.and(|wanted| {
            let rate = rate.as_ref();
            wanted.rates = notation::parse_rates(rate)
                .map_err(|accepted| invalid(&wanted.name, format!("the rate {rate:?}"), accepted))?;
            Ok(())
        })
    }

    /// Asks for the permit.
    ///
    /// Whoever has asked before and waits goes first. A run that asks again for what it holds has it at once. Dropping the
    /// permit gives it back, and the end of the run gives back the rest; where the worker dies, it is free within one lease.
    ///
    /// # Errors
    ///
    /// [`Retry`], if there is none: returned from the task, as `?` does, it is a deferral. The slot is free, and the job
    /// stands in the limit's line until it is called. What is wrong with the limit itself (a name, a number, a rate, or
    /// neither [`concurrency`](Self::concurrency) nor [`rate`](Self::rate)) ends the job as dead, and says so.
    pub async fn acquire(self) -> Result<Permit, Retry> {
        let wanted = self.wanted.map_err(Retry::never)?;
        if wanted.max_concurrent.is_none() && wanted.rates.is_empty() {
            let accepted = ".concurrency(5), .rate(\"100/m\"), or both".into();
            return Err(Retry::never(invalid(&wanted.name, "no number".into(), accepted)));
        }
        let gives_back = match &self.context.grants {
            Some(grants) => grants.acquire(wanted).await?,
            // A context for tests grants everything.
            None => Box::new(|_| -> Returning { Box::pin(async {}) }),
        };
        Ok(Permit { gives_back: Some(gives_back) })
    }

    fn and(mut self, change: impl FnOnce(&mut Wanted) -> Result<()>) -> Self {
        self.wanted = self.wanted.and_then(|mut wanted| change(&mut wanted).map(|()| wanted));
        self
    }
}

fn invalid(name: &Name, given: String, accepted: String) -> Error {
    Error::Invalid { what: format!("limit {name}"), given, accepted }
}

/// The right to use what a named limit counts. Dropping it gives it back.
#[must_use = "dropping a permit gives it back: keep it while you use what it is for"]
pub struct Permit {
    gives_back: Option<GivesBack>,
}

impl Permit {
    /// Gives the permit back, and lets nobody have one for `length`, at least 10 ms: what a body says that was told
    /// "429, wait 30 s" by what the limit guards.
    ///
    /// It answers when the hold is in force, with what the body returns: the run counts as a deferral, and its job is the
    /// first to get a permit afterwards. A hold never ends an earlier one sooner.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use flexiq::{Context, Retry};
    /// # fn post(_: &str) -> Result<(), Duration> { Err(Duration::from_secs(30)) }
    /// #[flexiq::task]
    /// async fn post_message(#[context] context: Context, message: String) -> Result<(), Retry> {
    ///     let permit = context.limit("partner-api").concurrency(5).acquire().await?;
    ///     match post(&message) {
    ///         Err(retry_after) => Err(permit.hold(retry_after).await),
    ///         Ok(()) => Ok(()),
    ///     }
    /// }
    /// # #[tokio::main] async fn main() { assert!(post_message(Context::for_test(), "hello".into()).await.is_err()) }
    /// ```
    pub async fn hold(mut self, length: Duration) -> Retry {
        let length = length.max(SHORTEST_DEFERRAL);
        if let Some(gives_back) = self.gives_back.take() {
            gives_back(Some(length)).await;
        }
        Retry::limited(Due::In(length))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(gives_back) = self.gives_back.take() {
            drop(gives_back(None));
        }
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{After, Outcome};
    use crate::task::retry::outcome_of;

    async fn mistake(limit: Limit<'_>) -> String {
        let error = limit.acquire().await.expect_err("it is wrong");
        match outcome_of(&error) {
            Outcome::Failed { error, after: After::Never } => error,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn what_is_wrong_with_a_limit_ends_the_job_and_says_what_to_write_instead() {
        let context = Context::for_test();
        let limit = || context.limit("api");
        for (limit, words) in [
            (limit(), ".concurrency(5), .rate(\"100/m\"), or both"),
            (limit().concurrency(0), "1 or more"),
            (limit().rate("100/x"), "100/m"),
            (limit().concurrency(1).key(&"k".repeat(201)), "at most 200 bytes"),
            (context.limit("partner api").concurrency(1), "A-Z a-z 0-9 _ . -"),
        ] {
            let told = mistake(limit).await;
            assert!(told.contains(words), "{told}");
        }
    }

    #[tokio::test]
    async fn a_context_for_tests_grants_every_permit() {
        let context = Context::for_test();
        let (one, two) = (context.limit("api").concurrency(1), context.limit("api").concurrency(1));
        let (one, two) = (one.acquire().await, two.acquire().await);
        assert!(one.is_ok() && two.is_ok());
    }

    #[tokio::test]
    async fn a_hold_is_a_wait_for_the_limit_of_at_least_ten_milliseconds() {
        let context = Context::for_test();
        let permit = context.limit("api").concurrency(1).acquire().await.expect("granted");
        assert_eq!(
            outcome_of(&permit.hold(Duration::ZERO).await),
            Outcome::Limited(Due::In(SHORTEST_DEFERRAL))
        );
    }
}
