//! The one error with which a task speaks to its worker, found again through whatever wraps it.

use std::error::Error;
use std::fmt;
use std::time::{Duration, SystemTime};

use super::returns::TaskError;
use crate::clock::Timestamp;
use crate::job::{After, Due, Hold, Outcome};

/// The error with which a task asks its worker for something else than a retry with back-off.
///
/// It is found anywhere in the chain of sources of what the task returns, so it may travel through `?` in an error
/// enum (a variant with `#[from]`), in `anyhow` or in a `Box`. The outermost one counts.
///
/// ```
/// # use std::time::Duration;
/// use flexiq::Retry;
///
/// fn fetch(busy: bool, page: &str) -> Result<u32, Retry> {
///     if busy {
///         return Err(Retry::after(Duration::from_secs(1))); // a deferral: no try is spent
///     }
///     page.parse().map_err(Retry::never) // what is no number now never will be
/// }
/// # assert!(fetch(true, "").is_err() && fetch(false, "x").is_err() && fetch(false, "7").is_ok());
/// ```
#[doc(alias = "defer")]
#[doc(alias = "snooze")]
#[derive(Debug)]
pub struct Retry(Signal);

/// What `Retry` hides behind itself.
///
/// Wrappers (`#[error(transparent)]`, anyhow, `io::Error::other`, `Arc`, `Box`) hide the value that they wrap and
/// forward its `source()`. So a `Retry` is recognized by its source, which is always this.
#[derive(Debug)]
struct Signal {
    ask: Ask,
    reason: Option<Box<dyn Error + Send + Sync>>,
}

#[derive(Clone, Copy, Debug)]
enum Ask {
    After(Duration),
    At(SystemTime),
    Never,
    Failed(Duration),
    Hold(Hold),
    Limited(Due),
}

impl Retry {
    /// Defers the job by `delay`, at least 10 ms: its slot is free meanwhile and no try is spent.
    pub fn after(delay: Duration) -> Self {
        Self(Signal { ask: Ask::After(delay), reason: None })
    }

    /// Defers the job to a moment, at least 10 ms from now: its slot is free meanwhile and no try is spent.
    pub fn at(moment: SystemTime) -> Self {
        Self(Signal { ask: Ask::At(moment), reason: None })
    }

    /// Puts the job back at its old place, and starts nothing of what it holds for a while: what
    /// [`Context::hold_task`](super::Context::hold_task) answers.
    pub(crate) fn hold(hold: Hold) -> Self {
        Self(Signal { ask: Ask::Hold(hold), reason: None })
    }

    /// Lets the job wait for a named limit, in whose line it stands: what
    /// [`Limit::acquire`](super::Limit::acquire) answers.
    pub(crate) fn limited(due: Due) -> Self {
        Self(Signal { ask: Ask::Limited(due), reason: None })
    }

    /// Fails for good: the job is dead, whatever its budget says.
    ///
    /// ```
    /// # fn parse() -> Result<u32, flexiq::Retry> {
    /// let pages: u32 = "seven".parse().map_err(flexiq::Retry::never)?;
    /// # Ok(pages) }
    /// # assert!(parse().is_err());
    /// ```
    pub fn never<E: TaskError>(error: E) -> Self {
        Self(Signal { ask: Ask::Never, reason: Some(error.into_boxed()) })
    }

    /// Fails, to be retried after `delay` instead of after the task's back-off. A try is spent.
    pub fn failed<E: TaskError>(error: E, delay: Duration) -> Self {
        Self(Signal { ask: Ask::Failed(delay), reason: Some(error.into_boxed()) })
    }
}

impl fmt::Display for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for Retry {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.reason, self.ask) {
            (Some(reason), _) => reason.fmt(f),
            (None, Ask::After(delay)) => write!(f, "asked to run again after {delay:?}"),
            (None, Ask::Hold(hold)) => {
                write!(f, "asked that nothing of its kind starts for {:?}", hold.length)
            }
            (None, Ask::Limited(_)) => f.write_str("waits for a named limit"),
            (None, _) => f.write_str("asked to run again later"),
        }
    }
}

impl Error for Signal {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.reason.as_deref().map(|reason| reason as _)
    }
}

/// How a run ended that returned this error.
pub(crate) fn outcome_of(error: &(dyn Error + 'static)) -> Outcome {
    let failed = |after| Outcome::Failed { error: story(error), after };
    match links(error).find_map(|link| link.downcast_ref::<Signal>()).map(|signal| signal.ask) {
        None => failed(After::Backoff),
        Some(Ask::Never) => failed(After::Never),
        Some(Ask::Failed(delay)) => failed(After::Delay(delay)),
        Some(Ask::After(delay)) => Outcome::Deferred(Due::In(delay)),
        Some(Ask::Hold(hold)) => Outcome::Held(hold),
        Some(Ask::Limited(due)) => Outcome::Limited(due),
        Some(Ask::At(moment)) => Outcome::Deferred(Due::At(Timestamp::from(moment))),
    }
}

/// An error and its sources, outermost first; bounded, since a source may lead back to itself.
fn links<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |link| (*link).source()).take(64)
}

/// The messages of an error and its sources, without the signal, and without what a message repeats of its source.
fn story(error: &(dyn Error + 'static)) -> String {
    let mut story = String::new();
    for link in links(error).filter(|link| !link.is::<Signal>()) {
        let message = link.to_string();
        if story.is_empty() {
            story = message;
        } else if !story.ends_with(&message) {
            story = format!("{story}: {message}");
        }
    }
    story
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use super::*;

    type Boxed = Box<dyn Error + Send + Sync>;

    #[derive(Debug, thiserror::Error)]
    enum Wrapped {
        #[error(transparent)]
        Transparent(#[from] Retry),
        #[error("with from: {0}")]
        Boxed(#[from] Boxed),
        #[error("with a source")]
        Source { source: Retry },
        #[error("lost: {0}")]
        Lost(Retry),
        #[error(transparent)]
        Anyhow(#[from] anyhow::Error),
    }

    /// Every usual way in which an error is wrapped on its way out of a task.
    fn wrappings(retry: fn() -> Retry) -> Vec<(&'static str, Boxed)> {
        vec![
            ("bare", retry().into()),
            ("#[error(transparent)]", Wrapped::Transparent(retry()).into()),
            ("#[from] a box", Wrapped::Boxed(retry().into()).into()),
            ("#[source]", Wrapped::Source { source: retry() }.into()),
            ("anyhow", anyhow::Error::from(retry()).into()),
            ("anyhow with context", anyhow::Error::from(retry()).context("while fetching").into()),
            ("anyhow, transparent", Wrapped::Anyhow(retry().into()).into()),
            ("eyre", eyre::Report::from(retry()).into()),
            ("eyre with context", eyre::Report::from(retry()).wrap_err("while fetching").into()),
            ("io::Error::other", io::Error::other(retry()).into()),
            ("Arc", Arc::new(retry()).into()),
            ("Box in a Box", Box::new(Boxed::from(retry())).into_boxed()),
        ]
    }

    #[test]
    fn a_retry_is_found_through_every_usual_wrapping() {
        let second = Duration::from_secs(1);
        for (wrapping, error) in wrappings(|| Retry::after(Duration::from_secs(1))) {
            assert_eq!(outcome_of(&*error), Outcome::Deferred(Due::In(second)), "{wrapping}");
        }
        for (wrapping, error) in wrappings(|| Retry::never("no such page")) {
            let Outcome::Failed { error, after: After::Never } = outcome_of(&*error) else {
                panic!("{wrapping}")
            };
            assert!(error.ends_with("no such page"), "{wrapping}: {error}");
            assert_eq!(error.matches("no such page").count(), 1, "{wrapping}: {error}");
        }
        for (wrapping, error) in wrappings(|| Retry::failed("busy", Duration::from_secs(1))) {
            let outcome = outcome_of(&*error);
            assert!(
                matches!(outcome, Outcome::Failed { after: After::Delay(delay), .. } if delay == second),
                "{wrapping}"
            );
        }
    }

    #[test]
    fn only_a_variant_without_from_or_source_loses_it() {
        let lost = outcome_of(&Wrapped::Lost(Retry::never("no such page")));
        assert_eq!(lost, Outcome::Failed { error: "lost: no such page".into(), after: After::Backoff });
    }

    #[test]
    fn the_outermost_of_two_counts() {
        let inner = Retry::after(Duration::from_secs(1));
        assert!(matches!(outcome_of(&Retry::never(inner)), Outcome::Failed { after: After::Never, .. }));
    }

    #[test]
    fn a_deferral_to_a_moment_keeps_it() {
        let moment = SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123);
        let due = Due::At(Timestamp::from_millis(1_700_000_000_123));
        assert_eq!(outcome_of(&Retry::at(moment)), Outcome::Deferred(due));
    }

    #[test]
    fn the_story_names_each_cause_once() {
        let cause = io::Error::other("disk full");
        let error = anyhow::Error::from(cause).context("write page").context("render");
        assert_eq!(story(&*Boxed::from(error)), "render: write page: disk full");
        assert_eq!(story(&*Boxed::from("plain text")), "plain text");
    }
}
