//! What does not go together: the function's shape, its keys, and arguments that need or exclude each other.

use proc_macro2::{Ident, Spacing, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{Expr, FnArg, Safety};

use crate::model::{Parameter, Role, Task};
use crate::problems::Problems;
use crate::types;
use crate::values::{NAME_RULE, is_name};

/// Adds a message for each.
pub(crate) fn task(task: &Task, problems: &mut Problems) {
    function(task, problems);
    for (index, parameter) in task.parameters.iter().enumerate() {
        types::parameter(parameter, problems);
        key(parameter, &task.parameters[..index], problems);
    }
    types::returned(&task.function.signature.output, problems);
    limits(task, problems);
    uniqueness(task, problems);
    cron(task, problems);
}

fn function(task: &Task, problems: &mut Problems) {
    let signature = &task.function.signature;
    for input in &signature.inputs {
        if let FnArg::Receiver(receiver) = input {
            problems.at(
                receiver,
                "a task has no `self`: write a function outside of the `impl`, and take what it needs as \
                 `#[state]` or as arguments",
            );
        }
    }
    if !signature.generics.params.is_empty() {
        problems.at(
            &signature.generics,
            "a task cannot be generic, since a stored job names no types: write the types out",
        );
    } else if let Some(clause) = &signature.generics.where_clause {
        problems.at(clause, "a task needs no `where`: remove it");
    }
    let remove = "remove it: a task is an `async fn` or a plain `fn`";
    if let Some(token) = &signature.constness {
        problems.at(token, remove);
    }
    if !matches!(signature.safety, Safety::Default) {
        problems.at(&signature.safety, remove);
    }
    if let Some(abi) = &signature.abi {
        problems.at(abi, remove);
    }
    if let Some(variadic) = &signature.variadic {
        problems.at(variadic, remove);
    }
    if task.settings.written("name").is_none() && !is_name(&task.name()) {
        problems.at(
            &signature.ident,
            format!("a task's name is {NAME_RULE}: write `#[flexiq::task(name = \"…\")]`"),
        );
    }
}

fn key(parameter: &Parameter, earlier: &[Parameter], problems: &mut Problems) {
    if !parameter.is_payload() {
        return;
    }
    let key = &parameter.key;
    if key.is_empty() {
        problems.at(&parameter.name, "the payload needs a name for this: write one with a letter");
    } else if earlier.iter().any(|other| other.is_payload() && other.key == *key) {
        problems.at(&parameter.name, format!("two parameters are stored as `{key}`: rename one"));
    }
}

fn limits(task: &Task, problems: &mut Problems) {
    let settings = &task.settings;
    let fleet_wide = ["max_concurrent", "rate_limit"];
    let per_partition =
        ["max_concurrent_per_partition", "rate_limit_per_partition", "max_pending_per_partition"];
    if settings.written("any_queue").is_some() {
        for limit in fleet_wide.iter().chain(&per_partition).filter_map(|name| settings.written(name)) {
            problems.at(
                limit,
                format!(
                    "a task with `any_queue` takes no fleet-wide limit, since each queue counts for itself: \
                     remove `{limit}` or `any_queue`"
                ),
            );
        }
    }
    if settings.written("partition_by").is_none() {
        for limit in per_partition.iter().filter_map(|name| settings.written(name)) {
            problems.at(limit, format!("`{limit}` needs `partition_by`: add `partition_by = …`"));
        }
    }
    if let Some(expr) = &settings.partition_by {
        key_expression("partition_by", expr, task, problems);
    }
}

fn uniqueness(task: &Task, problems: &mut Problems) {
    let settings = &task.settings;
    let (all, by) = (settings.written("unique"), settings.written("unique_by"));
    match (all, by, settings.written("unique_until")) {
        (Some(_), Some(by), _) => {
            problems.at(
                by,
                "a task is unique by all arguments or by an expression: remove `unique` or `unique_by`",
            );
        }
        (None, None, Some(until)) => {
            problems.at(until, "`unique_until` needs a key: add `unique = \"args\"` or `unique_by = …`")
        }
        _ => {}
    }
    if let Some(expr) = &settings.unique_by {
        key_expression("unique_by", expr, task, problems);
    }
}

fn cron(task: &Task, problems: &mut Problems) {
    let settings = &task.settings;
    if settings.written("cron").is_none() {
        for part in ["timezone", "catch_up"].iter().filter_map(|name| settings.written(name)) {
            problems.at(part, format!("`{part}` needs a cron: add `cron = \"*/5 * * * *\"`"));
        }
        return;
    }
    for parameter in task.payload().filter(|parameter| parameter.default().is_none()) {
        problems.at(
            &parameter.name,
            format!(
                "nobody gives a cron job its arguments: write `#[default] {0}` or `#[default = …] {0}`",
                parameter.name
            ),
        );
    }
}

/// A key is made of the payload alone, since every producer must come to the same one.
fn key_expression(argument: &str, expr: &Expr, task: &Task, problems: &mut Problems) {
    for parameter in task.parameters.iter().filter(|parameter| !parameter.is_payload()) {
        let mark = if matches!(parameter.role, Role::State) { "#[state]" } else { "#[context]" };
        if let Some(named) = free_name(expr.to_token_stream(), &parameter.name) {
            problems.at(
                named,
                format!(
                    "`{argument}` sees the payload alone, and `{}` is `{mark}`: make the key of other parameters",
                    parameter.name
                ),
            );
        }
    }
}

/// Where a name stands for itself: not as a field, a method or a part of a path.
fn free_name(tokens: TokenStream, name: &Ident) -> Option<Ident> {
    let mut behind_dot = false;
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let before_colon = matches!(tokens.peek(), Some(TokenTree::Punct(punct)) if punct.as_char() == ':');
        match &token {
            TokenTree::Ident(ident) if !behind_dot && !before_colon && ident.unraw() == name.unraw() => {
                return Some(ident.clone());
            }
            TokenTree::Group(group) => {
                if let Some(found) = free_name(group.stream(), name) {
                    return Some(found);
                }
            }
            _ => {}
        }
        behind_dot = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '.' && punct.spacing() == Spacing::Alone);
    }
    None
}
