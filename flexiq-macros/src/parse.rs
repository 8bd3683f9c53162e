//! Tokens to parts: the attribute's `name = value` pairs, and the function in four pieces.
//!
//! Nothing is judged here but what cannot be split. The function's body is never looked into.

use proc_macro2::{TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Expr, Ident, Path, Signature, Token, Visibility, token};

use crate::problems::Problems;

/// One argument of the attribute.
pub(crate) struct Argument {
    pub(crate) name: Ident,
    pub(crate) value: Value,
}

/// What stands behind an argument's name.
pub(crate) enum Value {
    /// Nothing.
    None,
    Expr(Expr),
    /// Of `crate = path`.
    Path(Path),
    /// What could not be read, and has its message already.
    Broken,
}

/// The annotated function.
pub(crate) struct Function {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) signature: Signature,
    pub(crate) body: TokenStream,
}

/// Splits the attribute's arguments at their commas; a bad one costs only itself.
pub(crate) fn arguments(tokens: TokenStream, problems: &mut Problems) -> Vec<Argument> {
    let split = |input: ParseStream<'_>| {
        let mut arguments = Vec::new();
        while !input.is_empty() {
            match Ident::parse_any(input) {
                Ok(name) => {
                    let value = problems.keep(value(&name, input)).unwrap_or(Value::Broken);
                    arguments.push(Argument { name, value });
                }
                Err(_) => {
                    let token: TokenTree = input.parse()?;
                    problems.at(token, "write arguments as `name = value`, such as `queue = \"reports\"`");
                }
            }
            let rest = until_comma(input)?;
            if let (Some(Argument { value, .. }), false) = (arguments.last_mut(), rest.is_empty()) {
                if !matches!(value, Value::Broken) {
                    problems.at(&rest, "a comma is missing before this");
                }
                *value = Value::Broken;
            }
            let _: Option<Token![,]> = input.parse()?;
        }
        Ok(arguments)
    };
    let split = split.parse2(tokens);
    problems.keep(split).unwrap_or_default()
}

fn value(name: &Ident, input: ParseStream<'_>) -> syn::Result<Value> {
    if input.peek(token::Paren) {
        return Err(syn::Error::new_spanned(name, format!("write `{name} = …`, without parentheses")));
    }
    if !input.peek(Token![=]) {
        return Ok(Value::None);
    }
    let equals: Token![=] = input.parse()?;
    if input.is_empty() || input.peek(Token![,]) {
        return Err(syn::Error::new_spanned(equals, format!("a value is missing behind `{name} =`")));
    }
    if name == "crate" {
        return Path::parse_mod_style(input).map(Value::Path).map_err(|error| {
            syn::Error::new(error.span(), "write a path, such as `crate = crate::jobs::flexiq`")
        });
    }
    input.parse().map(Value::Expr)
}

fn until_comma(input: ParseStream<'_>) -> syn::Result<TokenStream> {
    let mut rest = TokenStream::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        rest.extend([input.parse::<TokenTree>()?]);
    }
    Ok(rest)
}

/// Splits the item into attributes, visibility, signature and body, if it is a function with a body.
pub(crate) fn function(tokens: &TokenStream, problems: &mut Problems) -> Option<Function> {
    let split = |input: ParseStream<'_>| {
        let function = Function {
            attributes: input.call(Attribute::parse_outer)?,
            visibility: input.parse()?,
            signature: input.parse()?,
            body: input.parse()?,
        };
        Ok(function)
    };
    let first = tokens.clone().into_iter().next();
    match split.parse2(tokens.clone()) {
        Ok(function) if matches!(function.body.clone().into_iter().next(), Some(TokenTree::Group(_))) => {
            Some(function)
        }
        _ => {
            problems.at(first, "`#[flexiq::task]` goes on a function with a body: `async fn` or `fn`");
            None
        }
    }
}
