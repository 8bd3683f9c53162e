//! The part of the model that the attribute's arguments give.

use std::time::Duration;

use syn::ext::IdentExt;
use syn::{Expr, Ident, Path};

use crate::near::nearest;
use crate::notation::{Backoff, Rate};
use crate::parse::{Argument, Value};
use crate::problems::Problems;
use crate::values;

/// The attribute's arguments; `None` is the default.
#[derive(Default)]
pub(crate) struct Settings {
    /// The names that were written, also where the value was refused.
    written: Vec<Ident>,
    pub(crate) name: Option<String>,
    pub(crate) queue: Option<String>,
    pub(crate) any_queue: bool,
    pub(crate) max_concurrent: Option<u64>,
    pub(crate) max_in_flight_per_task: Option<u64>,
    pub(crate) rates: Vec<Rate>,
    pub(crate) partition_by: Option<Expr>,
    pub(crate) max_concurrent_per_partition: Option<u64>,
    pub(crate) rates_per_partition: Vec<Rate>,
    pub(crate) max_pending_per_partition: Option<u64>,
    pub(crate) max_retries: Option<u32>,
    pub(crate) retry_backoff: Option<Backoff>,
    pub(crate) max_deferrals: Option<u32>,
    pub(crate) max_losses: Option<u32>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) expires: Option<Duration>,
    pub(crate) result_ttl: Option<Duration>,
    pub(crate) priority: i8,
    pub(crate) unique_by: Option<Expr>,
    pub(crate) until_start: bool,
    pub(crate) cron: Option<String>,
    pub(crate) timezone: Option<String>,
    pub(crate) catch_up: bool,
    pub(crate) krate: Option<Path>,
}

/// Every argument, with what to type.
const ARGUMENTS: [(&str, &str); 25] = [
    ("name", "name = \"build_report\""),
    ("queue", "queue = \"reports\""),
    ("any_queue", "any_queue"),
    ("max_concurrent", "max_concurrent = 2"),
    ("max_in_flight_per_task", "max_in_flight_per_task = 2"),
    ("rate_limit", "rate_limit = \"100/m\""),
    ("partition_by", "partition_by = account_id"),
    ("max_concurrent_per_partition", "max_concurrent_per_partition = 2"),
    ("rate_limit_per_partition", "rate_limit_per_partition = \"100/m\""),
    ("max_pending_per_partition", "max_pending_per_partition = 1000"),
    ("max_retries", "max_retries = 3"),
    ("retry_backoff", "retry_backoff = \"1s..10m\""),
    ("max_deferrals", "max_deferrals = 100"),
    ("max_losses", "max_losses = 3"),
    ("timeout", "timeout = \"30s\""),
    ("expires", "expires = \"1h\""),
    ("result_ttl", "result_ttl = \"1d\""),
    ("priority", "priority = 10"),
    ("unique", "unique = \"args\""),
    ("unique_by", "unique_by = account_id"),
    ("unique_until", "unique_until = \"start\""),
    ("cron", "cron = \"*/5 * * * *\""),
    ("timezone", "timezone = \"Europe/Stockholm\""),
    ("catch_up", "catch_up = \"one\""),
    ("crate", "crate = path"),
];

/// What others call our arguments.
const WORDS_OF_OTHERS: [(&str, &str); 12] = [
    ("backoff", "retry_backoff"),
    ("concurrency", "max_concurrent"),
    ("deadline", "expires"),
    ("key", "partition_by"),
    ("max_attempts", "max_retries"),
    ("max_jobs", "max_concurrent"),
    ("rate", "rate_limit"),
    ("retries", "max_retries"),
    ("retry", "max_retries"),
    ("schedule", "cron"),
    ("throttle", "rate_limit"),
    ("ttl", "result_ttl"),
];

impl Settings {
    /// The argument of this name, if it was written, well or badly.
    pub(crate) fn written(&self, name: &str) -> Option<&Ident> {
        self.written.iter().find(|written| *written == name)
    }

    /// Reads each argument; what is unknown, repeated or refused has its message.
    pub(crate) fn read(arguments: Vec<Argument>, problems: &mut Problems) -> Self {
        let mut settings = Self::default();
        for Argument { name, value } in arguments {
            let word = name.unraw().to_string();
            let Some((_, sample)) = ARGUMENTS.iter().find(|(known, _)| *known == word) else {
                problems.at(&name, unknown(&word));
                continue;
            };
            if settings.written(&word).is_some() {
                problems.at(&name, format!("`{word}` is given twice: remove one"));
                continue;
            }
            match value {
                Value::Broken => {}
                Value::Path(path) => settings.krate = Some(path),
                Value::None if word == "any_queue" => settings.any_queue = true,
                Value::None => problems.at(&name, format!("`{word}` needs a value: write `{sample}`")),
                Value::Expr(expr) if word == "any_queue" => {
                    problems.at(expr, "`any_queue` takes no value: write `any_queue` alone");
                }
                Value::Expr(expr) => {
                    let set = settings.set(&name, expr);
                    problems.keep(set);
                }
            }
            settings.written.push(name);
        }
        settings
    }

    fn set(&mut self, name: &Ident, expr: Expr) -> syn::Result<()> {
        const MOST: u64 = u32::MAX as u64;
        match name.to_string().as_str() {
            "name" => self.name = Some(values::name(name, &expr)?),
            "queue" => self.queue = Some(values::name(name, &expr)?),
            "max_concurrent" => self.max_concurrent = Some(values::limit(name, &expr, MOST)?),
            "max_in_flight_per_task" => {
                self.max_in_flight_per_task = Some(values::limit(name, &expr, MOST)?);
            }
            "rate_limit" => self.rates = values::rates(name, &expr)?,
            "partition_by" => self.partition_by = Some(expr),
            "max_concurrent_per_partition" => {
                self.max_concurrent_per_partition = Some(values::limit(name, &expr, MOST)?);
            }
            "rate_limit_per_partition" => self.rates_per_partition = values::rates(name, &expr)?,
            "max_pending_per_partition" => {
                self.max_pending_per_partition = Some(values::limit(name, &expr, MOST)?);
            }
            "max_retries" => self.max_retries = Some(values::budget(name, &expr)?),
            "retry_backoff" => self.retry_backoff = Some(values::backoff(name, &expr)?),
            "max_deferrals" => self.max_deferrals = Some(values::budget(name, &expr)?),
            "max_losses" => self.max_losses = Some(values::budget(name, &expr)?),
            "timeout" => self.timeout = Some(values::duration(name, &expr)?),
            "expires" => self.expires = Some(values::duration(name, &expr)?),
            "result_ttl" => self.result_ttl = Some(values::duration(name, &expr)?),
            "priority" => self.priority = values::priority(name, &expr)?,
            "unique" => {
                values::word(name, &expr, &["args"])?;
            }
            "unique_by" => self.unique_by = Some(expr),
            "unique_until" => self.until_start = values::word(name, &expr, &["finish", "start"])? == 1,
            "cron" => self.cron = Some(values::cron(name, &expr)?),
            "timezone" => self.timezone = Some(values::timezone(name, &expr)?),
            "catch_up" => self.catch_up = values::word(name, &expr, &["none", "one"])? == 1,
            known => unreachable!("{known} is in ARGUMENTS and was not read"),
        }
        Ok(())
    }
}

fn unknown(word: &str) -> String {
    let meant = WORDS_OF_OTHERS.iter().find(|(theirs, _)| *theirs == word).map(|(_, ours)| *ours);
    match meant.or_else(|| nearest(word, ARGUMENTS.iter().map(|(name, _)| *name))) {
        Some(near) => {
            let sample = ARGUMENTS.iter().find(|(name, _)| *name == near).map_or(near, |(_, sample)| *sample);
            format!("unknown argument `{word}`; did you mean `{sample}`?")
        }
        None => {
            let names: Vec<_> = ARGUMENTS.iter().map(|(name, _)| format!("`{name}`")).collect();
            format!("unknown argument `{word}`; known are {}", names.join(", "))
        }
    }
}
