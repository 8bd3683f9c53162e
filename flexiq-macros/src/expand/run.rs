//! The functions behind a definition: one that decodes a payload and prepares a run, and those that make keys of it.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::Expr;

use super::parts::{At, constant, definition_name, return_name};
use crate::model::{DefaultValue, Parameter, Role, Task};

/// Decodes the payload and prepares one run.
pub(super) fn run(task: &Task) -> TokenStream {
    let private = At::call_site().private(task);
    let definition = definition_name(task);
    let function = &task.function.signature.ident;
    let returns = return_name(task);
    let local = |name: &str| Ident::new(name, Span::mixed_site());
    let values: Vec<_> = (0..task.parameters.len()).map(|index| local(&format!("value_{index}"))).collect();
    let takes = task.parameters.iter().enumerate().map(|(index, parameter)| {
        let (constant, value) = (constant(task, index), &values[index]);
        match parameter.role {
            Role::Payload { .. } => {
                let take = take(task, parameter, &constant);
                local_quote!(let #value = #take;)
            }
            Role::State => local_quote!(let #value = #constant.take(&#definition, &input)?;),
            Role::Context => local_quote!(let #value = #constant(&input);),
        }
    });
    let max_result = local("max_result");
    // At the function's name: a future that is not `Send` is reported there.
    let ready = if task.function.signature.asyncness.is_some() {
        quote_spanned!(function.span()=> #private::run_async(#function(#(#values),*), #returns, #max_result))
    } else {
        quote_spanned!(function.span()=>
            #private::run_plain(move || #function(#(#values),*), #returns, #max_result)
        )
    };
    local_quote! {
        fn __flexiq_run(input: #private::Input) -> #private::Running {
            #private::running(|| {
                let payload = #private::Payload::open(&#definition, &input.payload)?;
                let #max_result = input.max_result;
                #(#takes)*
                ::core::result::Result::Ok(#ready)
            })
        }
    }
}

/// Decodes one parameter of `payload`.
fn take(task: &Task, parameter: &Parameter, constant: &Ident) -> TokenStream {
    let of_type = &parameter.of_type;
    match parameter.default() {
        None => local_quote!(payload.take(&#constant)?),
        Some(DefaultValue::OfType) => {
            let at = At::of(of_type);
            let (private, function) = (at.private(task), Ident::new("default_of", at.end));
            let default = quote!(|| #private::#function::<#of_type>());
            local_quote!(payload.take_or(&#constant, #default)?)
        }
        Some(DefaultValue::Expr(expr)) => {
            local_quote!(payload.take_or(&#constant, || -> #of_type { #expr })?)
        }
    }
}

/// The function behind `partition_by` or `unique_by`: the parameters that the expression names, bound as references.
pub(super) fn key_function(what: &str, expr: &Expr, task: &Task) -> TokenStream {
    let private = At::call_site().private(task);
    let (function, definition) = (format_ident!("__flexiq_{what}"), definition_name(task));
    let named = task
        .parameters
        .iter()
        .enumerate()
        .filter(|(_, parameter)| parameter.is_payload() && parameter.is_named_in(expr.to_token_stream()));
    let bindings = named.map(|(index, parameter)| {
        let (name, take) = (&parameter.name, take(task, parameter, &constant(task, index)));
        local_quote!(let #name = &#take;)
    });
    let at = At::of(expr);
    let key_of = Ident::new("key_of", at.end);
    let at_expression = at.private(task);
    let key = quote_spanned!(at.start=> &(#expr));
    local_quote! {
        fn #function(payload: &[u8]) -> #private::KeyResult {
            let payload = #private::Payload::open(&#definition, payload)?;
            #(#bindings)*
            #at_expression::#key_of(&#definition, #key)
        }
    }
}
