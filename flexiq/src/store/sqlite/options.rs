//! Where a store lies and how it is kept: the URL and what it may say.

use std::path::PathBuf;
use std::time::Duration;

use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::store::Absent;
use crate::store::url::{unescape, unknown_setting};

/// How to open a [`SqliteStore`](super::SqliteStore).
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// Where the jobs lie.
    pub location: Location,
    /// What survives a power cut.
    pub synchronous: Synchronous,
    /// The clock whose moments are stored. The system's by default.
    pub clock: Clock,
    /// How long a verb may take before it answers [`Error::StoreUnavailable`], in real time; [`Duration::MAX`] is as long as
    /// it takes. Defaults to 5 s.
    ///
    /// `wait`, `called` and `ended` wait as long as they are asked to.
    pub timeout: Duration,
    /// What is done when there is no store there. It is created by default.
    pub absent: Absent,
}

/// Where the jobs lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// In this process: gone when the last handle is dropped.
    Memory,
    /// In a file, which several processes of one host may share.
    File(PathBuf),
}

/// What survives a power cut. A killed process loses nothing in either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// All that was answered: each commit is synced to the disk.
    #[default]
    Full,
    /// All up to the last checkpoint: the file stays whole, and the newest commits may be lost.
    Normal,
}

impl SqliteOptions {
    /// The defaults for this place.
    pub fn new(location: Location) -> Self {
        Self {
            location,
            synchronous: Synchronous::default(),
            clock: Clock::system(),
            absent: Absent::default(),
            timeout: Duration::from_secs(5),
        }
    }

    /// Reads `sqlite://jobs.db`, `sqlite:///var/jobs.db` or `sqlite::memory:`, with `?synchronous=normal`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidUrl`] for anything else.
    pub fn from_url(url: &str) -> Result<Self> {
        let invalid = |reason: String| Error::InvalidUrl { url: url.into(), reason };
        let (place, query) = url.split_once('?').map_or((url, None), |(place, query)| (place, Some(query)));
        let location = match place.strip_prefix("sqlite:") {
            Some(":memory:" | "//:memory:") => Location::Memory,
            Some(rest) => match rest.strip_prefix("//") {
                Some("" | "/") => return Err(invalid("it names no file".into())),
                Some(path) if path.ends_with('/') => return Err(invalid("it names a folder".into())),
                Some(path) => Location::File(unescape("the path", path).map_err(invalid)?.into()),
                None => return Err(invalid("after sqlite: comes // and a path, or :memory:".into())),
            },
            None => return Err(invalid("it does not begin with sqlite:".into())),
        };
        let mut options = Self::new(location);
        for setting in
            query.into_iter().flat_map(|query| query.split('&')).filter(|setting| !setting.is_empty())
        {
            options.set(setting).map_err(invalid)?;
        }
        Ok(options)
    }

    fn set(&mut self, setting: &str) -> Result<(), String> {
        let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
        if key != "synchronous" {
            return Err(unknown_setting(key, &["synchronous"]));
        }
        self.synchronous = match value {
            "full" => Synchronous::Full,
            "normal" => Synchronous::Normal,
            _ => return Err(format!("synchronous is full or normal, not {value:?}")),
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> Location {
        Location::File(path.into())
    }

    #[test]
    fn each_form_of_the_url_names_its_place() {
        for (url, location, synchronous) in [
            ("sqlite://jobs.db", file("jobs.db"), Synchronous::Full),
            ("sqlite:///var/jobs.db", file("/var/jobs.db"), Synchronous::Full),
            ("sqlite://a%20b%3f.db", file("a b?.db"), Synchronous::Full),
            ("sqlite::memory:", Location::Memory, Synchronous::Full),
            ("sqlite://jobs.db?synchronous=normal", file("jobs.db"), Synchronous::Normal),
            ("sqlite://jobs.db?synchronous=full", file("jobs.db"), Synchronous::Full),
        ] {
            let options = SqliteOptions::from_url(url).expect(url);
            assert_eq!((options.location, options.synchronous), (location, synchronous), "{url}");
        }
    }

    #[test]
    fn a_wrong_url_is_told_what_is_wrong_with_it() {
        for (url, reason) in [
            ("jobs.db", "does not begin with sqlite:"),
            ("sqlite:jobs.db", "comes // and a path"),
            ("sqlite://", "names no file"),
            ("sqlite:///var/", "names a folder"),
            ("sqlite://jobs.db?sync=normal", "unknown setting \"sync\""),
            ("sqlite://jobs.db?synchronus=normal", "did you mean \"synchronous\"?"),
            ("sqlite://jobs.db?synchronous=off", "full or normal, not \"off\""),
            ("sqlite://100%.db", "written %25"),
        ] {
            let error = SqliteOptions::from_url(url).expect_err(url);
            assert!(matches!(error, Error::InvalidUrl { .. }));
            assert!(error.to_string().contains(reason), "{error}");
        }
    }
}
