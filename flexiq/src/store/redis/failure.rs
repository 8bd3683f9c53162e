//! What Redis's errors mean to the caller: try again, or change something.

use std::sync::Arc;

use redis::RedisError;

use crate::error::{Effect, Error};

/// By the code that an error begins with: what it means, and what to do about it.
const REFUSALS: [(&str, &str); 11] = [
    ("OOM", "it is full: raise maxmemory; finished jobs are pruned by themselves"),
    ("READONLY", "it is a replica: name the master"),
    ("NOAUTH", "it wants a password: write redis://:password@host"),
    ("WRONGPASS", "user or password are wrong"),
    ("NOPERM", FORBIDDEN),
    ("MISCONF", "it cannot save to its disk and takes no writes until it can"),
    ("NOREPLICAS", "it has fewer replicas than min-replicas-to-write asks for"),
    ("WRONGTYPE", "one of its keys has another type: another program uses this prefix"),
    ("CROSSSLOT", CLUSTER),
    ("MOVED", CLUSTER),
    ("ASK", CLUSTER),
];

const CLUSTER: &str = "it is a cluster, which is not built yet";
const FORBIDDEN: &str = "its ACL forbids this user a command, a key or a channel: the book's page on Redis has the line that allows enough";

/// Codes of servers that will answer later.
const LATER: [(&str, &str); 5] = [
    ("LOADING", "it loads its data"),
    ("BUSY", "a script of somebody stops it"),
    ("MASTERDOWN", "it is a replica without its master"),
    ("TRYAGAIN", "it moves its keys"),
    ("CLUSTERDOWN", "its cluster is down"),
];

/// What some errors say that have no code of their own, and what it means.
const FULL_OF_CLIENTS: (&str, &str) =
    ("max number of clients", "it has as many clients as it takes: raise maxclients, or connect less");
const ACL_IN_SCRIPT: &str = "ACL failure in script";

/// What to do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Tell the caller.
    Refused,
    /// Tell the caller, and connect anew: the name may by now mean another server.
    Moved,
    /// Nothing was done; try again later.
    Later,
    /// Nobody knows; connect anew and try again.
    Lost,
}

impl Verdict {
    /// Whether the caller is told at once.
    pub(super) fn is_final(self) -> bool {
        matches!(self, Self::Refused | Self::Moved)
    }
}

/// What to do about a driver's error.
pub(super) fn judge(error: &RedisError) -> Verdict {
    if later(error).is_some() {
        Verdict::Later
    } else if of_tls(error).is_some() {
        Verdict::Refused
    } else if code_of(error).as_deref() == Some("READONLY") {
        Verdict::Moved
    } else if error.is_io_error() || error.is_timeout() || error.is_connection_dropped() {
        Verdict::Lost
    } else {
        Verdict::Refused
    }
}

/// What a driver's error means. `effect` is what is known of a call whose answer was lost.
pub(super) fn explain(error: RedisError, place: &str, effect: Effect) -> Error {
    if let Some(reason) = later(&error) {
        return unavailable(place, effect, reason, Some(error));
    }
    let code = code_of(&error);
    if let Some((_, reason)) = REFUSALS.iter().find(|(known, _)| Some(*known) == code.as_deref()) {
        return refused(place, (*reason).into(), Some(error));
    }
    if error.detail().is_some_and(|detail| detail.contains(ACL_IN_SCRIPT)) {
        return refused(place, FORBIDDEN.into(), Some(error));
    }
    if let Some(reason) = of_tls(&error) {
        return refused(place, reason, Some(error));
    }
    if judge(&error) == Verdict::Lost {
        let reason = if error.is_connection_refusal() {
            "nobody listens there"
        } else if error.is_timeout() && place.starts_with("rediss:") {
            // One that speaks no TLS waits for the rest of what it takes for a command.
            "it does not answer: is this its port for TLS?"
        } else if error.is_timeout() {
            "it does not answer"
        } else {
            "the connection broke"
        };
        return unavailable(place, effect, reason, Some(error));
    }
    if error.kind() == redis::ErrorKind::AuthenticationFailed {
        return refused(place, "user or password are wrong, or it wants one".into(), Some(error));
    }
    refused(place, format!("Redis reports: {error}"), Some(error))
}

/// What two sides disagree about that do not come to speak.
fn of_tls(_error: &RedisError) -> Option<String> {
    #[cfg(feature = "tls")]
    return super::tls::explain(_error);
    #[cfg(not(feature = "tls"))]
    None
}

/// Why a server will answer later, if it will.
fn later(error: &RedisError) -> Option<&'static str> {
    let code = code_of(error);
    let known = LATER.iter().find(|(known, _)| Some(*known) == code.as_deref()).map(|(_, reason)| *reason);
    known.or_else(|| {
        let (text, reason) = FULL_OF_CLIENTS;
        error.detail().is_some_and(|detail| detail.contains(text)).then_some(reason)
    })
}

/// The code of an error; one that a script met stands within its text.
fn code_of(error: &RedisError) -> Option<String> {
    let code = error.code()?;
    let known = |code: &str| REFUSALS.iter().chain(&LATER).any(|(known, _)| *known == code);
    if known(code) {
        return Some(code.into());
    }
    let text = error.detail()?;
    let words = text.split(|letter: char| !letter.is_ascii_uppercase()).filter(|word| word.len() > 2);
    words.take(3).find(|word| known(word)).map(Into::into)
}

/// One error for each of those whose calls shared a step. Its source is the error that they share.
pub(super) fn share(error: Error) -> impl Iterator<Item = Error> {
    let error = Arc::new(error);
    std::iter::repeat_with(move || copy(&error))
}

fn copy(error: &Arc<Error>) -> Error {
    let source = Some(Box::new(error.clone()) as _);
    match &**error {
        Error::StoreUnavailable { store, effect, reason, .. } => {
            Error::StoreUnavailable { store: store.clone(), effect: *effect, reason: reason.clone(), source }
        }
        Error::StoreRefused { store, reason, .. } => {
            Error::StoreRefused { store: store.clone(), reason: reason.clone(), source }
        }
        other => Error::StoreRefused { store: String::new(), reason: other.to_string(), source },
    }
}

/// The store answered, and refused.
pub(super) fn refused(place: &str, reason: String, source: Option<RedisError>) -> Error {
    Error::StoreRefused { store: place.into(), reason, source: source.map(|error| Box::new(error) as _) }
}

/// The store did not answer, or could not be reached.
pub(super) fn unavailable(place: &str, effect: Effect, reason: &str, source: Option<RedisError>) -> Error {
    Error::StoreUnavailable {
        store: place.into(),
        effect,
        reason: reason.into(),
        source: source.map(|error| Box::new(error) as _),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An error as a server sends it.
    fn error(text: &str) -> RedisError {
        let value = redis::parse_redis_value(format!("-{text}\r\n").as_bytes()).expect("it is an answer");
        match value {
            redis::Value::ServerError(error) => error.into(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_a_server_says_is_later_moved_or_refused_and_told_in_words() {
        use Verdict::{Later, Moved, Refused};
        let script = "script: f, on @user_script:1.";
        for (text, verdict, reason) in [
            ("LOADING Redis is loading the dataset in memory", Later, "it loads its data"),
            ("BUSY Redis is busy running a script.", Later, "a script of somebody stops it"),
            ("MASTERDOWN Link with MASTER is down", Later, "a replica without its master"),
            ("TRYAGAIN Multiple keys request during rehashing of slot", Later, "moves its keys"),
            ("CLUSTERDOWN The cluster is down", Later, "its cluster is down"),
            ("ERR max number of clients reached", Later, "raise maxclients"),
            ("READONLY You can't write against a read only replica.", Moved, "it is a replica"),
            (&format!("READONLY You can't write against a read only replica. {script}"), Moved, "a replica"),
            ("OOM command not allowed when used memory > 'maxmemory'.", Refused, "raise maxmemory"),
            (&format!("OOM command not allowed. {script}"), Refused, "raise maxmemory"),
            (
                "ERR Error running script: @user_script:1: -OOM command not allowed",
                Refused,
                "raise maxmemory",
            ),
            ("MISCONF Errors writing to the AOF file: No space left on device", Refused, "to its disk"),
            ("NOREPLICAS Not enough good replicas to write.", Refused, "fewer replicas"),
            ("NOAUTH Authentication required.", Refused, "it wants a password"),
            ("WRONGPASS invalid username-password pair or user is disabled.", Refused, "are wrong"),
            ("NOPERM User flexiq has no permissions to run the 'info' command", Refused, "its ACL forbids"),
            (
                &format!("ERR ACL failure in script: This user has no permissions. {script}"),
                Refused,
                "its ACL",
            ),
            ("WRONGTYPE Operation against a key holding the wrong kind of value", Refused, "another type"),
            ("CROSSSLOT Keys in request don't hash to the same slot", Refused, "it is a cluster"),
            ("MOVED 3999 127.0.0.1:6381", Refused, "it is a cluster"),
            ("ASK 3999 127.0.0.1:6381", Refused, "it is a cluster"),
            ("EXECABORT Transaction discarded", Refused, "Redis reports"),
            ("ERR unknown command 'evalsha'", Refused, "Redis reports"),
        ] {
            assert_eq!(judge(&error(text)), verdict, "{text}");
            let told = explain(error(text), "redis://h", Effect::Unknown);
            assert!(told.to_string().contains(reason), "{text}: {told}");
            assert_eq!(told.is_transient(), verdict == Later, "{text}");
        }
    }

    #[test]
    fn an_answer_that_was_lost_may_have_been_an_effect_and_no_connection_was_none() {
        for (kind, reason) in [
            (std::io::ErrorKind::ConnectionRefused, "nobody listens there"),
            (std::io::ErrorKind::ConnectionReset, "the connection broke"),
            (std::io::ErrorKind::TimedOut, "it does not answer"),
        ] {
            let error = RedisError::from(std::io::Error::from(kind));
            assert_eq!(judge(&error), Verdict::Lost);
            let told = explain(error, "redis://h", Effect::Unknown);
            assert!(matches!(told, Error::StoreUnavailable { effect: Effect::Unknown, .. }), "{told:?}");
            assert!(told.to_string().contains(reason), "{told}");
        }
    }
}
