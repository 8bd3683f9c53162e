//! What the types of a task may be, as far as their tokens tell. The rest is the compiler's to say, by the runtime's
//! traits.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{ReturnType, Type};

use crate::model::{Parameter, Role};
use crate::problems::Problems;

/// Refuses a parameter's type that borrows or has no name.
pub(crate) fn parameter(parameter: &Parameter, problems: &mut Problems) {
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

/// Refuses a return type that no alias could make a `Result`.
pub(crate) fn returned(output: &ReturnType, problems: &mut Problems) {
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
