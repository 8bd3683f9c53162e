//! What every piece of generated code needs: hidden names, the function's `#[cfg]`s, the path to flexiq, spans.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Attribute, Meta, Token};

use crate::model::Task;

/// The hidden constant of a parameter. A number ends the name, so that no two tasks' names meet.
pub(super) fn constant(task: &Task, index: usize) -> Ident {
    format_ident!("__FLEXIQ_{}_{index}", task.base(), span = Span::call_site())
}

/// The hidden constant of the return type.
pub(super) fn return_name(task: &Task) -> Ident {
    format_ident!("__FLEXIQ_{}_return", task.base(), span = Span::call_site())
}

/// The hidden static of the definition.
pub(super) fn definition_name(task: &Task) -> Ident {
    format_ident!("__FLEXIQ_TASK_{}", task.base(), span = Span::call_site())
}

/// The function's `#[cfg]`s, also those in a `#[cfg_attr]`: what is generated comes and goes with it.
pub(super) fn cfgs(task: &Task) -> TokenStream {
    task.function.attributes.iter().filter_map(cfg).collect()
}

fn cfg(attribute: &Attribute) -> Option<TokenStream> {
    if attribute.path().is_ident("cfg") {
        return Some(attribute.to_token_stream());
    }
    let Meta::List(list) = &attribute.meta else { return None };
    if !list.path.is_ident("cfg_attr") {
        return None;
    }
    let parts =
        list.parse_args_with(syn::punctuated::Punctuated::<Meta, Token![,]>::parse_terminated).ok()?;
    let mut parts = parts.into_iter();
    let condition = parts.next()?;
    let cfgs: Vec<_> = parts.filter(|part| part.path().is_ident("cfg")).collect();
    (!cfgs.is_empty()).then(|| quote!(#[cfg_attr(#condition, #(#cfgs),*)]))
}

/// Generated code answers to no lint of the user's.
pub(super) fn allow() -> TokenStream {
    quote! {
        #[allow(
            dead_code, deprecated, non_upper_case_globals, private_interfaces, unreachable_pub, unused_parens,
            unused_qualifications, unused_variables, clippy::all, clippy::nursery, clippy::pedantic,
            clippy::restriction
        )]
    }
}

/// The path to flexiq, reported at `span`.
pub(super) fn krate(task: &Task, span: Span) -> TokenStream {
    match &task.settings.krate {
        Some(path) => {
            let respan = |mut token: TokenTree| {
                token.set_span(span.resolved_at(token.span()));
                token
            };
            path.to_token_stream().into_iter().map(respan).collect()
        }
        None => quote_spanned!(span=> ::flexiq),
    }
}

/// The two ends of some tokens. A path whose first token has the one and whose last token has the other is reported
/// at all that lies between.
pub(super) struct At {
    pub(super) start: Span,
    pub(super) end: Span,
}

impl At {
    pub(super) fn of(tokens: &impl ToTokens) -> Self {
        let mut tokens = tokens.to_token_stream().into_iter().map(|token| token.span());
        let start = tokens.next().unwrap_or_else(Span::call_site);
        Self { start, end: tokens.last().unwrap_or(start) }
    }

    pub(super) fn call_site() -> Self {
        Self { start: Span::call_site(), end: Span::call_site() }
    }

    /// `::flexiq::__private`.
    pub(super) fn private(&self, task: &Task) -> TokenStream {
        let (krate, start) = (krate(task, self.start), self.start);
        quote_spanned!(start=> #krate::__private)
    }
}
