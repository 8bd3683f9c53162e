//! Where a store lies: the URL and what it may say.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::name::Name;
use crate::store::Absent;
use crate::store::url::{unescape, unknown_setting};

/// How to open a [`RedisStore`](super::RedisStore).
#[derive(Clone)]
pub struct RedisOptions {
    /// The server.
    pub(super) address: Address,
    /// The files of `rediss://`.
    pub(super) certificates: Certificates,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) database: i64,
    /// What all keys begin with: several stores may share a server.
    pub prefix: Name,
    /// The clock of the worker side. A manual one tells the store's moments, too; else they are the server's.
    pub clock: Clock,
    /// How long a call may take before it answers [`Error::StoreUnavailable`]. Defaults to 5 s.
    pub timeout: Duration,
    /// What is done when there is no store there. It is created by default.
    pub absent: Absent,
}

/// A server's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    Tcp(String, u16),
    Tls(String, u16),
    Socket(PathBuf),
}

/// Files in PEM form.
#[derive(Clone, Debug, Default)]
pub(super) struct Certificates {
    /// Of the CA that signed the server's certificate. The system's hold where there is none.
    pub(super) ca: Option<PathBuf>,
    /// The certificate that is shown to the server, and its key.
    pub(super) own: Option<(PathBuf, PathBuf)>,
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
    /// With the feature `tls`, `rediss://` is encrypted. The server's certificate must be of a CA that the system knows, or
    /// of that in `?ca=/path/ca.pem`; a server that wants to see one is shown `cert=/path/cert.pem&key=/path/key.pem`. The
    /// files are in PEM form, and read again with each new connection.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidUrl`] for anything else, without the password, and for a file that cannot be used.
    pub fn from_url(url: &str) -> Result<Self> {
        let invalid = |reason: String| Error::InvalidUrl { url: url.into(), reason };
        let (place, query) = url.split_once('?').unwrap_or((url, ""));
        let (scheme, rest) = place
            .split_once("://")
            .ok_or_else(|| invalid("it does not begin with redis:// or unix://".into()))?;
        let (login, rest) = rest.rsplit_once('@').map_or((None, rest), |(login, rest)| (Some(login), rest));
        // Its rest was cut off with what seems a query, and no message may show what stands before it.
        if login.is_none() && scheme != "unix" && host_and_port(rest).is_err() && query.contains('@') {
            return Err(invalid("a ? in a password is written %3F".into()));
        }
        let (address, path) = match scheme {
            "redis" => {
                let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
                let (host, port) = host_and_port(host).map_err(invalid)?;
                (Address::Tcp(host, port), path)
            }
            "unix" if rest.is_empty() => return Err(invalid("it names no socket".into())),
            "unix" => (Address::Socket(unescape("the URL", rest).map_err(invalid)?.into()), ""),
            "rediss" if !cfg!(feature = "tls") => {
                return Err(invalid("this build of flexiq has no TLS: enable the feature `tls`".into()));
            }
            "rediss" => {
                let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
                let (host, port) = host_and_port(host).map_err(invalid)?;
                (Address::Tls(host, port), path)
            }
            "redis+sentinel" => {
                return Err(invalid("Sentinel is not built yet: name the master itself".into()));
            }
            "redis+cluster" => return Err(invalid("Redis Cluster is not built yet: name one server".into())),
            other => return Err(invalid(format!("there is no store for {other}://"))),
        };
        let mut options = Self {
            address,
            certificates: Certificates::default(),
            user: None,
            password: None,
            database: database(path).map_err(invalid)?,
            prefix: Name::from_static("flexiq"),
            clock: Clock::system(),
            timeout: Duration::from_secs(5),
            absent: Absent::default(),
        };
        if let Some(login) = login {
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            options.user = some(unescape("the URL", user).map_err(invalid)?);
            options.password = some(unescape("the URL", password).map_err(invalid)?);
        }
        let (mut cert, mut key) = (None, None);
        for setting in query.split('&').filter(|setting| !setting.is_empty()) {
            let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
            let file = || options.file(name, value).map(Some).map_err(invalid);
            match name {
                "prefix" => {
                    options.prefix =
                        Name::new("prefix", value).map_err(|error| invalid(error.to_string()))?;
                }
                "db" => options.database = database(value).map_err(invalid)?,
                "ca" => options.certificates.ca = file()?,
                "cert" => cert = file()?,
                "key" => key = file()?,
                _ => return Err(invalid(unknown_setting(name, &["prefix", "db", "ca", "cert", "key"]))),
            }
        }
        options.certificates.own = match (cert, key) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            _ => return Err(invalid("cert and key go together".into())),
        };
        // Read once here, so that a wrong file is known before anything is tried.
        #[cfg(feature = "tls")]
        super::tls::read(&options.certificates).map_err(invalid)?;
        Ok(options)
    }

    /// The path of a file for TLS.
    fn file(&self, name: &str, value: &str) -> Result<PathBuf, String> {
        match &self.address {
            Address::Tls(..) => unescape("the URL", value).map(PathBuf::from),
            _ => Err(format!("{name} is for rediss://, which is encrypted")),
        }
    }

    /// The address for messages.
    pub(super) fn place(&self) -> String {
        match &self.address {
            Address::Tcp(host, port) => format!("redis://{host}:{port}/{}", self.database),
            Address::Tls(host, port) => format!("rediss://{host}:{port}/{}", self.database),
            Address::Socket(path) => format!("unix://{}?db={}", path.display(), self.database),
        }
    }
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

fn host_and_port(host: &str) -> Result<(String, u16), String> {
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
    Ok((name.into(), port))
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

    #[cfg(not(feature = "tls"))]
    #[test]
    fn tls_that_is_not_compiled_in_names_its_feature() {
        let error = RedisOptions::from_url("rediss://h").expect_err("no TLS");
        assert!(error.to_string().contains("enable the feature `tls`"), "{error}");
    }

    #[cfg(feature = "tls")]
    #[test]
    fn a_wrong_file_of_an_encrypted_url_is_told_before_anything_is_tried() {
        assert_eq!(RedisOptions::from_url("rediss://h").expect("fine").place(), "rediss://h:6379/0");
        for (settings, reason) in [
            ("ca=/nowhere/ca.pem".to_owned(), "ca=/nowhere/ca.pem cannot be read"),
            ("cert=a.pem".to_owned(), "cert and key go together"),
            (format!("ca={}/../Cargo.toml", env!("CARGO_MANIFEST_DIR")), "holds no certificate"),
        ] {
            let error = RedisOptions::from_url(&format!("rediss://:secret@h?{settings}")).expect_err(reason);
            assert!(error.to_string().contains(reason), "{error}");
        }
    }

    #[test]
    fn a_wrong_url_is_told_what_is_wrong_with_it() {
        for (url, reason) in [
            ("redis://", "names no host"),
            ("redis://h:x", "port is a number"),
            ("redis://h/one", "database is a number"),
            ("redis://ada:se?cret@h", "written %3F"),
            ("redis://h?prefx=a", "did you mean \"prefix\"?"),
            ("redis://h?prefix=a{b", "invalid prefix name"),
            ("redis://h?ca=/ca.pem", "ca is for rediss://"),
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
