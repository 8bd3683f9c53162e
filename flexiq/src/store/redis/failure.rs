//! What Redis's errors mean to the caller: try again, or change something.

use redis::RedisError;

use crate::error::{Effect, Error};

/// By the code that an error begins with: what it means, and what to do about it.
const REFUSALS: [(&str, &str); 10] = [
    ("OOM", "it is full: raise maxmemory; finished jobs are pruned by themselves"),
    ("READONLY", "it is a replica: name the master"),
    ("NOAUTH", "it wants a password: write redis://:password@host"),
    ("WRONGPASS", "user or password are wrong"),
    ("NOPERM", "its ACL forbids this user a command, a key or a channel: allow +@all ~{prefix* &prefix*"),
    ("MISCONF", "it cannot save to its disk and takes no writes until it can"),
    ("NOREPLICAS", "it has fewer replicas than min-replicas-to-write asks for"),
    ("WRONGTYPE", "one of its keys has another type: another program uses this prefix"),
    ("CROSSSLOT", "it is a cluster, which is not built yet"),
    ("MOVED", "it is a cluster, which is not built yet"),
];

/// Codes of servers that will answer later.
const LATER: [(&str, &str); 4] = [
    ("LOADING", "it loads its data"),
    ("BUSY", "a script of somebody stops it"),
    ("MASTERDOWN", "it is a replica without its master"),
    ("TRYAGAIN", "it moves its keys"),
];

/// What a driver's error means. `effect` is what is known of a call whose answer was lost.
pub(super) fn explain(error: RedisError, place: &str, effect: Effect) -> Error {
    let code = code_of(&error);
    let of = |table: &[(&str, &'static str)]| {
        table.iter().find(|(known, _)| Some(*known) == code.as_deref()).map(|(_, reason)| *reason)
    };
    if let Some(reason) = of(&LATER) {
        return unavailable(place, Effect::None, reason, Some(error));
    }
    if let Some(reason) = of(&REFUSALS) {
        return refused(place, reason.into(), Some(error));
    }
    if error.is_io_error() || error.is_timeout() || error.is_connection_dropped() {
        let reason =
            if error.is_connection_refusal() { "nobody listens there" } else { "the connection broke" };
        return unavailable(place, effect, reason, Some(error));
    }
    if error.kind() == redis::ErrorKind::AuthenticationFailed {
        return refused(place, "user or password are wrong, or it wants one".into(), Some(error));
    }
    refused(place, format!("Redis reports: {error}"), Some(error))
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
