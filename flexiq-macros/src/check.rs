//! What does not go together: the function's shape, its types, and arguments that need or exclude each other.

use proc_macro2::{Ident, Spacing, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{Expr, FnArg, ReturnType, Safety, Type};

use crate::model::{Parameter, Role, Task};
use crate::problems::Problems;
use crate::values::{NAME_RULE, is_name};

/// Adds a message for each.
pub(crate) fn task(task: &Task, problems: &mut Problems) {
    function(task, problems);
    for (index, parameter) in task.parameters.iter().enumerate() {
        parameter_type(parameter, problems);
        key(parameter, &task.parameters[..index], problems);
    }
    returned(&task.function.signature.output, problems);
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

fn parameter_type(parameter: &Parameter, problems: &mut Problems) {
    let of_type = &parameter.of_type;
    let written = spelled(of_type);
    match (&parameter.role, bare(of_type)) {
        (_, Type::ImplTrait(_)) => {
            problems.at(of_type, "a task's parameter has a type with a name: write it instead of `impl`");
        }
        (Role::Payload { .. }, Type::Reference(reference)) => {
            let owned = match bare(&reference.elem) {
                Type::Path(path) if path.path.is_ident("str") => "String".into(),
                Type::Path(path) if path.path.is_ident("Path") => "PathBuf".into(),
                Type::Slice(slice) => format!("Vec<{}>", spelled(&slice.elem)),
                other => spelled(other),
            };
            problems
                .at(of_type, format!("task arguments must be owned; use `{owned}` instead of `{written}`"));
        }
        (Role::Payload { .. }, _) if borrows(of_type.to_token_stream(), true) => {
            problems.at(of_type, format!("task arguments must be owned, and `{written}` borrows: use a type without `&` and lifetimes"));
        }
        (Role::State, _) if borrows(of_type.to_token_stream(), false) => problems.at(
            of_type,
            format!(
                "a state lives as long as its worker, and `{written}` borrows; use an owned type or an `Arc`"
            ),
        ),
        _ => {}
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

fn returned(output: &ReturnType, problems: &mut Problems) {
    let ReturnType::Type(_, of_type) = output else { return };
    if is_no_result(of_type) {
        let value = match bare(of_type) {
            Type::ImplTrait(_) | Type::Never(_) => "T".into(),
            _ => spelled(of_type),
        };
        problems.at(
            of_type,
            format!(
                "a task returns `()` or `Result<T, E>`: write `Result<{value}, E>` with the error that it may meet, \
                 such as `String` or `anyhow::Error`"
            ),
        );
    }
}

/// Whether a return type is none that a task may have, as far as its tokens tell.
pub(crate) fn is_no_result(of_type: &Type) -> bool {
    match bare(of_type) {
        Type::Tuple(tuple) => !tuple.elems.is_empty(),
        Type::Path(path) => {
            path.path.segments.last().is_some_and(|last| NO_RESULT.iter().any(|name| last.ident == name))
        }
        _ => true,
    }
}

/// Types that are no `Result` by any alias, so that the message need not wait for the compiler.
const NO_RESULT: [&str; 26] = [
    "bool", "char", "str", "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128",
    "isize", "f32", "f64", "String", "Vec", "Option", "Box", "Arc", "Rc", "HashMap", "BTreeMap", "HashSet",
];

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

/// Whether a type holds a reference or a lifetime; `&'static` counts if `even_static`, and `Cow<'static, _>` never.
fn borrows(tokens: TokenStream, even_static: bool) -> bool {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let found = match (&token, tokens.peek()) {
            (TokenTree::Group(group), _) => borrows(group.stream(), even_static),
            (TokenTree::Punct(punct), next) if punct.as_char() == '&' => {
                even_static || !matches!(next, Some(TokenTree::Punct(punct)) if punct.as_char() == '\'')
            }
            (TokenTree::Punct(punct), Some(TokenTree::Ident(name))) if punct.as_char() == '\'' => {
                name != "static"
            }
            _ => false,
        };
        if found {
            return true;
        }
    }
    false
}

/// Looks through what a `macro_rules!` puts around its fragments, and through parentheses.
pub(crate) fn bare(of_type: &Type) -> &Type {
    match of_type {
        Type::Group(group) => bare(&group.elem),
        Type::Paren(paren) => bare(&paren.elem),
        other => other,
    }
}

/// A type as a person writes it.
fn spelled(of_type: &Type) -> String {
    let mut text = of_type.to_token_stream().to_string();
    for (spaced, tight) in [
        (" :: ", "::"),
        (" < ", "<"),
        ("< ", "<"),
        (" <", "<"),
        (" >", ">"),
        (" ,", ","),
        ("& ", "&"),
        ("' ", "'"),
        ("( ", "("),
    ] {
        text = text.replace(spaced, tight);
    }
    text
}
