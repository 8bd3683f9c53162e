//! `assert_enqueued!(test, 2 of reports::build_report, month == "2026-10")`: what is asserted of which task, so that a name
//! that the task does not have is found by the compiler.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{Expr, LitInt, Path, Token, token};

/// The assertion, as it was written.
struct Assertion {
    krate: TokenStream,
    test: Expr,
    count: Option<Expr>,
    /// The annotated function.
    task: Path,
    fields: Vec<(Ident, Expr)>,
}

/// What the assertion becomes. The path to flexiq and a semicolon stand before what the user wrote.
pub(crate) fn expand(input: TokenStream) -> TokenStream {
    match parse.parse2(input) {
        Ok(assertion) => assertion.expand(),
        Err(error) => error.into_compile_error(),
    }
}

fn parse(input: ParseStream<'_>) -> syn::Result<Assertion> {
    let krate = crate_path(input)?;
    let test = input.parse()?;
    comma(input, "the task: `assert_enqueued!(test, build_report)`")?;
    let count = count(input)?;
    let task = Path::parse_mod_style(input).map_err(|error| {
        syn::Error::new(error.span(), "write the task's function here, such as `build_report`")
    })?;
    let mut fields = Vec::new();
    while !input.is_empty() {
        comma(input, "a parameter: `month == \"2026-10\"`")?;
        if input.is_empty() {
            break;
        }
        fields.push(field(input)?);
    }
    Ok(Assertion { krate, test, count, task, fields })
}

fn crate_path(input: ParseStream<'_>) -> syn::Result<TokenStream> {
    let mut path = TokenStream::new();
    while !input.peek(Token![;]) {
        path.extend([input.parse::<TokenTree>()?]);
    }
    input.parse::<Token![;]>()?;
    Ok(path)
}

fn comma(input: ParseStream<'_>, what_comes: &str) -> syn::Result<()> {
    match input.parse::<Token![,]>() {
        Ok(_) => Ok(()),
        Err(error) => Err(syn::Error::new(error.span(), format!("write a comma before {what_comes}"))),
    }
}

/// `3 of`, or `(count) of`.
fn count(input: ParseStream<'_>) -> syn::Result<Option<Expr>> {
    let count = if input.peek(LitInt) {
        let literal: LitInt = input.parse()?;
        syn::parse_quote!(#literal)
    } else if input.peek(token::Paren) {
        let content;
        syn::parenthesized!(content in input);
        content.parse()?
    } else {
        return Ok(None);
    };
    match Ident::parse_any(input) {
        Ok(of) if of == "of" => Ok(Some(count)),
        Ok(other) => Err(syn::Error::new(other.span(), "write `of` behind the number: `3 of build_report`")),
        Err(error) => Err(syn::Error::new(error.span(), "write `of` behind the number: `3 of build_report`")),
    }
}

fn field(input: ParseStream<'_>) -> syn::Result<(Ident, Expr)> {
    let name = Ident::parse_any(input).map_err(|error| {
        syn::Error::new(error.span(), "write a parameter of the task: `month == \"2026-10\"`")
    })?;
    if !input.peek(Token![==]) {
        return Err(input.error(format!("write `{name} == …`: what the parameter must be equal to")));
    }
    input.parse::<Token![==]>()?;
    Ok((name, input.parse()?))
}

impl Assertion {
    fn expand(self) -> TokenStream {
        let Self { krate, test, count, task, fields } = self;
        let handle = handle(&task);
        let private = quote!(#krate::__private);
        // What is wrong with one of them is reported there.
        let at = |span: Span, tokens: &dyn ToTokens| respanned(tokens.to_token_stream(), span);
        let base = task.segments.last().map(|last| last.ident.unraw().to_string()).unwrap_or_default();
        let checks = fields.iter().map(|(name, _)| {
            let key = key(name);
            let refusal = format!("task {base} has no parameter `{key}` that is stored");
            let (private, handle) = (at(name.span(), &private), at(name.span(), &handle));
            quote_spanned!(name.span()=> const _: () = #private::expect_parameter(#handle(), #key, #refusal);)
        });
        let compared = fields.iter().map(|(name, value)| {
            let (key, span) = (key(name), value.span());
            let private = at(span, &private);
            quote_spanned!(span=> #private::field(#key, &(#value)))
        });
        let wanted = match count {
            Some(count) => quote!(#private::Wanted::Exactly(#count)),
            None => quote!(#private::Wanted::Some),
        };
        quote! {{
            #(#checks)*
            #private::assert_enqueued(&#test, #handle(), #wanted, &[#(#compared),*])
        }}
    }
}

/// The same tokens, reported at `span`.
fn respanned(tokens: TokenStream, span: Span) -> TokenStream {
    let respan = |mut token: TokenTree| {
        token.set_span(span.resolved_at(token.span()));
        token
    };
    tokens.into_iter().map(respan).collect()
}

/// The key of a parameter in the payload: the name without `r#` and leading `_`.
fn key(name: &Ident) -> String {
    name.unraw().to_string().trim_start_matches('_').to_owned()
}

/// The path of `task_build_report` for that of `build_report`.
fn handle(task: &Path) -> Path {
    let mut handle = task.clone();
    if let Some(last) = handle.segments.last_mut() {
        last.ident = format_ident!("task_{}", last.ident.unraw(), span = last.ident.span());
    }
    handle
}
