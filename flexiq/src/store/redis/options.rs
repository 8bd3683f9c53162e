//! Where a store lies: the URL and what it may say.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::name::Name;
use crate::store::url::{unescape, unknown_setting};

/// How to open a [`RedisStore`](super::RedisStore).
#[derive(Clone)]
pub struct RedisOptions {
    /// The server.
    pub(super) address: Address,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) database: i64,
    /// What all keys begin with: several stores may share a server.
    pub prefix: Name,
    /// The clock of the worker side. A manual one tells the store's moments, too; else they are the server's.
    pub clock: Clock,
    /// How long a call may take before it answers [`Error::StoreUnavailable`]. Defaults to 5 s.
    pub timeout: Duration,
}

/// A server's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    Tcp(String, u16),
    Socket(PathBuf),
}

impl fmt::Debug for RedisOptions {
    // The password is never shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisOptions")
            .field("address", &self.address)
            .field("database", &self.database)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

impl RedisOptions {
    /// Reads `redis://user:password@host:6379/0?prefix=shop` or `unix:///run/redis.sock?db=0&prefix=shop`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidUrl`] for anything else, without the password.
    pub fn from_url(url: &str) -> Result<Self> {
        let invalid = |reason: String| Error::InvalidUrl { url: url.into(), reason };
        let (place, query) = url.split_once('?').unwrap_or((url, ""));
        let (scheme, rest) = place
            .split_once("://")
            .ok_or_else(|| invalid("it does not begin with redis:// or unix://".into()))?;
        let (login, rest) = rest.rsplit_once('@').map_or((None, rest), |(login, rest)| (Some(login), rest));
        let (address, path) = match scheme {
            "redis" => {
                let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
                (tcp(host).map_err(invalid)?, path)
            }
            "unix" if rest.is_empty() => return Err(invalid("it names no socket".into())),
            "unix" => (Address::Socket(unescape("the URL", rest).map_err(invalid)?.into()), ""),
            "rediss" => {
                return Err(invalid("TLS is not built yet: use redis:// inside a private network".into()));
            }
            "redis+sentinel" => {
                return Err(invalid("Sentinel is not built yet: name the master itself".into()));
            }
            "redis+cluster" => return Err(invalid("Redis Cluster is not built yet: name one server".into())),
            other => return Err(invalid(format!("there is no store for {other}://"))),
        };
        let mut options = Self {
            address,
            user: None,
            password: None,
            database: database(path).map_err(invalid)?,
            prefix: Name::from_static("flexiq"),
            clock: Clock::system(),
            timeout: Duration::from_secs(5),
        };
        if let Some(login) = login {
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            options.user = some(unescape("the URL", user).map_err(invalid)?);
            options.password = some(unescape("the URL", password).map_err(invalid)?);
        }
        for setting in query.split('&').filter(|setting| !setting.is_empty()) {
            options.set(setting).map_err(invalid)?;
        }
        Ok(options)
    }

    fn set(&mut self, setting: &str) -> Result<(), String> {
        let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
        match key {
            "prefix" => self.prefix = Name::new("prefix", value).map_err(|error| error.to_string())?,
            "db" => self.database = database(value)?,
            _ => {
                return Err(unknown_setting(key, &["prefix", "db"]));
            }
        }
        Ok(())
    }

    /// The address for messages.
    pub(super) fn place(&self) -> String {
        match &self.address {
            Address::Tcp(host, port) => format!("redis://{host}:{port}/{}", self.database),
            Address::Socket(path) => format!("unix://{}?db={}", path.display(), self.database),
        }
    }
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

fn tcp(host: &str) -> Result<Address, String> {
    // The colons of an IPv6 address stand in brackets.
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port),
        _ => (host, "6379"),
    };
    let port = port.parse().map_err(|_| format!("the port is a number up to 65535, not {port:?}"))?;
    let name = name.trim_start_matches('[').trim_end_matches(']');
    if name.is_empty() {
        return Err("it names no host".into());
    }
    Ok(Address::Tcp(name.into(), port))
}

fn database(path: &str) -> Result<i64, String> {
    match path {
        "" => Ok(0),
        number => number
            .parse::<u32>()
            .map(i64::from)
            .map_err(|_| format!("the database is a number such as 0, not {number:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_of_the_url_names_its_place() {
        for (url, place, login, prefix) in [
            ("redis://localhost", "redis://localhost:6379/0", (None, None), "flexiq"),
            ("redis://[::1]:7000/2", "redis://::1:7000/2", (None, None), "flexiq"),
            ("redis://:se%40cret@h?prefix=shop", "redis://h:6379/0", (None, Some("se@cret")), "shop"),
            ("redis://ada:x@h:1/3", "redis://h:1/3", (Some("ada"), Some("x")), "flexiq"),
            ("unix:///run/r.sock?db=4", "unix:///run/r.sock?db=4", (None, None), "flexiq"),
        ] {
            let options = RedisOptions::from_url(url).expect(url);
            assert_eq!(options.place(), place);
            assert_eq!((options.user.as_deref(), options.password.as_deref()), login, "{url}");
            assert_eq!(&*options.prefix, prefix);
        }
    }

    #[test]
    fn a_wrong_url_is_told_what_is_wrong_with_it() {
        for (url, reason) in [
            ("redis://", "names no host"),
            ("redis://h:x", "port is a number"),
            ("redis://h/one", "database is a number"),
            ("redis://h?prefx=a", "did you mean \"prefix\"?"),
            ("redis://h?prefix=a{b", "invalid prefix name"),
            ("rediss://h", "TLS is not built yet"),
            ("redis+sentinel://h/name", "Sentinel is not built yet"),
            ("redis+cluster://h", "Cluster is not built yet"),
            ("unix://", "names no socket"),
        ] {
            let error = RedisOptions::from_url(url).expect_err(url);
            assert!(matches!(error, Error::InvalidUrl { .. }));
            assert!(error.to_string().contains(reason), "{error}");
        }
    }
}
