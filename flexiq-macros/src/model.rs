//! What a task is: its settings, its parameters by role, its function. The model answers questions; it emits nothing.

use std::time::Duration;

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, format_ident};
use syn::ext::IdentExt;
use syn::{Attribute, Expr, FnArg, Ident, Meta, Pat, Path, Type};

use crate::near::nearest;
use crate::notation::{Backoff, Rate};
use crate::parse::{Argument, Function, Value};
use crate::problems::Problems;
use crate::values;

/// One annotated function.
pub(crate) struct Task {
    pub(crate) settings: Settings,
    pub(crate) parameters: Vec<Parameter>,
    /// Without the marks on its parameters.
    pub(crate) function: Function,
}

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

/// One parameter of the function.
pub(crate) struct Parameter {
    /// Its name as written, or one made up for a pattern.
    pub(crate) name: Ident,
    /// Its key in the payload: the name without `r#` and leading `_`.
    pub(crate) key: String,
    pub(crate) of_type: Type,
    pub(crate) role: Role,
}

/// Where a parameter's value comes from.
pub(crate) enum Role {
    Payload { default: Option<DefaultValue>, secret: bool },
    State,
    Context,
}

/// What stands for a parameter that a payload does not name.
pub(crate) enum DefaultValue {
    /// `#[default]`.
    OfType,
    /// `#[default = EXPR]`.
    Expr(Expr),
}

impl Task {
    /// Makes the model of what was parsed, taking our marks off the parameters.
    pub(crate) fn read(arguments: Vec<Argument>, mut function: Function, problems: &mut Problems) -> Self {
        let settings = Settings::read(arguments, problems);
        let mut parameters = Vec::new();
        for input in &mut function.signature.inputs {
            if let FnArg::Typed(typed) = input {
                let name = binding(&typed.pat, parameters.len(), problems);
                let role = Role::read(&mut typed.attrs, problems);
                let key = name.unraw().to_string().trim_start_matches('_').to_owned();
                parameters.push(Parameter { name, key, of_type: (*typed.ty).clone(), role });
            }
        }
        Self { settings, parameters, function }
    }

    /// The function's name without `r#`.
    pub(crate) fn base(&self) -> Ident {
        self.function.signature.ident.unraw()
    }

    /// The stored name.
    pub(crate) fn name(&self) -> String {
        self.settings.name.clone().unwrap_or_else(|| self.base().to_string())
    }

    /// The parameters that are stored.
    pub(crate) fn payload(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(|parameter| parameter.is_payload())
    }
}

impl Parameter {
    pub(crate) fn is_payload(&self) -> bool {
        matches!(self.role, Role::Payload { .. })
    }

    pub(crate) fn default(&self) -> Option<&DefaultValue> {
        match &self.role {
            Role::Payload { default, .. } => default.as_ref(),
            _ => None,
        }
    }

    pub(crate) fn is_secret(&self) -> bool {
        matches!(self.role, Role::Payload { secret: true, .. })
    }

    /// Whether an expression may name it: over-cautious, since a format string may hold a name too.
    pub(crate) fn is_named_in(&self, tokens: TokenStream) -> bool {
        let name = self.name.unraw().to_string();
        tokens.into_iter().any(|token| match token {
            TokenTree::Group(group) => self.is_named_in(group.stream()),
            TokenTree::Ident(ident) => ident.unraw() == name,
            TokenTree::Literal(literal) => literal.to_string().contains(&name),
            TokenTree::Punct(_) => false,
        })
    }
}

/// The name that a parameter's pattern binds.
fn binding(pattern: &Pat, index: usize, problems: &mut Problems) -> Ident {
    match pattern {
        Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => return pat.ident.clone(),
        Pat::Wild(_) => {
            problems.at(pattern, "the payload needs a name for this: write one, such as `_unused`");
        }
        _ => problems
            .at(pattern, "a task's parameter is one name: write `name: Type`, and take it apart in the body"),
    }
    format_ident!("__flexiq_{index}")
}

impl Role {
    /// Takes our marks off a parameter's attributes.
    fn read(attributes: &mut Vec<Attribute>, problems: &mut Problems) -> Self {
        let (marks, others): (Vec<Attribute>, _) = std::mem::take(attributes).into_iter().partition(is_mark);
        *attributes = others;
        for other in attributes.iter() {
            if other.path().is_ident("cfg") || other.path().is_ident("cfg_attr") {
                problems.at(
                    other,
                    "a payload has the same parameters in every build: put the `#[cfg]` on the whole function",
                );
            }
        }
        // It may hold a mark, which nobody else knows.
        attributes.retain(|other| !other.path().is_ident("cfg_attr"));
        let find = |name: &str| marks.iter().find(|mark| mark.path().is_ident(name));
        let mut refuse = |mark: Option<&Attribute>, message: &str| {
            if let Some(mark) = mark {
                problems.at(mark, message);
            }
        };
        for (index, mark) in marks.iter().enumerate() {
            if marks[..index].iter().any(|earlier| earlier.path().get_ident() == mark.path().get_ident()) {
                refuse(Some(mark), "this mark is there already: remove one");
            }
            match (&mark.meta, mark.path().is_ident("default")) {
                (Meta::Path(_), _) | (Meta::NameValue(_), true) => {}
                (_, true) => refuse(Some(mark), "write `#[default]` or `#[default = EXPR]`"),
                (_, false) => {
                    let name = mark.path().to_token_stream();
                    refuse(Some(mark), &format!("write `#[{name}]` alone"));
                }
            }
        }
        let (state, context) = (find("state"), find("context"));
        if state.is_some() || context.is_some() {
            if state.is_some() {
                refuse(context, "a parameter is `#[state]` or `#[context]`: remove one");
            }
            let stored = "this parameter comes from the worker and is not stored: remove this mark";
            refuse(find("default"), stored);
            refuse(find("secret"), stored);
            return if state.is_some() { Self::State } else { Self::Context };
        }
        let default = find("default").map(|mark| match &mark.meta {
            Meta::NameValue(pair) => DefaultValue::Expr(pair.value.clone()),
            _ => DefaultValue::OfType,
        });
        Self::Payload { default, secret: find("secret").is_some() }
    }
}

fn is_mark(attribute: &Attribute) -> bool {
    ["state", "context", "default", "secret"].iter().any(|mark| attribute.path().is_ident(mark))
}

impl Settings {
    /// The argument of this name, if it was written, well or badly.
    pub(crate) fn written(&self, name: &str) -> Option<&Ident> {
        self.written.iter().find(|written| *written == name)
    }

    fn read(arguments: Vec<Argument>, problems: &mut Problems) -> Self {
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
