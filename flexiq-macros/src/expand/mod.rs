//! Writes the code: the function as it stands, `enqueue_x` and `task_x`, and the hidden definition.
//!
//! Every type of the user's is bounded in one place, a hidden constant whose tokens carry the type's span, so that a
//! type which does not fit gives one message there. Local names are hygienic; hidden items begin with `__FLEXIQ_`.

/// Code whose local names are its own: the user's expressions beside it do not see them.
macro_rules! local_quote {
    ($($tokens:tt)*) => { ::quote::quote_spanned!(::proc_macro2::Span::mixed_site()=> $($tokens)*) };
}

mod definition;
mod parts;
mod run;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{GenericArgument, PathArguments, ReturnType, Token, Type};

use crate::model::{Role, Task};
use crate::problems::Problems;
use crate::types::{bare, is_no_result};
use parts::{At, allow, cfgs, constant, definition_name, krate, return_name};

/// The expansion of a task without problems.
pub(crate) fn task(task: &Task) -> TokenStream {
    let function = function(task);
    let constants = constants(task);
    let definition = definition::definition(task);
    let enqueue = enqueue(task);
    let handle = handle(task);
    quote!(#function #constants #definition #enqueue #handle)
}

/// The expansion of a task with problems: the function, the messages, and an `enqueue_x` of the right type, so that
/// its calls give no messages of their own.
pub(crate) fn stub(task: &Task, problems: Problems) -> TokenStream {
    let function = function(task);
    let messages = problems.into_messages();
    if task.function.signature.receiver().is_some() {
        return quote!(#function #messages);
    }
    let (krate, cfgs, allow) = (krate(task, Span::call_site()), cfgs(task), allow());
    let (name, visibility) = (generated("enqueue", task), &task.function.visibility);
    let (generics, clause) =
        (&task.function.signature.generics, &task.function.signature.generics.where_clause);
    let (arguments, enqueued) = (arguments(task), enqueued(task));
    quote! {
        #function
        #messages
        #cfgs
        #allow
        #[doc(hidden)]
        #visibility fn #name #generics(_: &#krate::Queue, #arguments) -> #enqueued #clause {
            ::core::unreachable!()
        }
    }
}

fn function(task: &Task) -> TokenStream {
    let function = &task.function;
    let (attributes, visibility) = (&function.attributes, &function.visibility);
    let (signature, body) = (&function.signature, &function.body);
    quote!(#(#attributes)* #visibility #signature #body)
}

/// A constant for each parameter and for the return type: the only places that bound their types.
fn constants(task: &Task) -> TokenStream {
    let (cfgs, allow) = (cfgs(task), allow());
    let parameters = task.parameters.iter().enumerate().map(|(index, parameter)| {
        let (name, of_type, key) = (constant(task, index), &parameter.of_type, &parameter.key);
        let (required, secret) = (parameter.default().is_none(), parameter.is_secret());
        let at = At::of(of_type);
        let private = at.private(task);
        let function = |name: &str| Ident::new(name, at.end);
        let (holder, value) = match parameter.role {
            Role::Payload { .. } => {
                let argument = function("argument");
                (
                    quote!(#private::Param<#of_type>),
                    quote!(#private::#argument::<#of_type>(#key, #required, #secret)),
                )
            }
            Role::State => {
                let state = function("state");
                (quote!(#private::StateParam<#of_type>), quote!(#private::#state::<#of_type>(#key)))
            }
            Role::Context => {
                let context = function("context");
                (quote!(fn(&#private::Input) -> #of_type), quote!(#private::#context::<#of_type>()))
            }
        };
        quote!(#cfgs #allow const #name: #holder = #value;)
    });
    let returned = returned_type(task);
    let at = At::of(&returned);
    let private = at.private(task);
    let name = return_name(task);
    let outcome = match written_value(&returned) {
        Some(value) => {
            let function = Ident::new("outcome_of", at.end);
            quote!(#private::#function::<#value, #returned>)
        }
        None => {
            let method = Ident::new("outcome", at.end);
            quote_spanned!(at.start=> <#returned as #private::TaskReturn>::#method)
        }
    };
    quote! {
        #(#parameters)*
        #cfgs #allow
        const #name: fn(#returned, usize) -> #private::Outcome = #outcome;
    }
}

fn enqueue(task: &Task) -> TokenStream {
    let (private, krate) = (At::call_site().private(task), krate(task, Span::call_site()));
    let (cfgs, allow, visibility) = (cfgs(task), allow(), &task.function.visibility);
    let (name, definition) = (generated("enqueue", task), definition_name(task));
    let (arguments, enqueued) = (arguments(task), enqueued(task));
    let puts = task.parameters.iter().enumerate().filter(|(_, parameter)| parameter.is_payload()).map(
        |(index, parameter)| {
            let (constant, argument) = (constant(task, index), &parameter.name);
            local_quote!(call.put(&#constant, &#argument);)
        },
    );
    let function = task.base();
    let summary = format!(
        " Enqueues a job: a worker will call [`{function}`](fn@{function}) with these arguments.\n\n \
         Nothing is stored before the answer is awaited."
    );
    let docs = docs(task);
    local_quote! {
        #[doc = #summary]
        #docs
        #cfgs #allow
        #visibility fn #name(queue: &#krate::Queue, #arguments) -> #enqueued {
            let mut call = #private::Call::new(&#definition);
            #(#puts)*
            #private::enqueue(queue, call)
        }
    }
}

fn handle(task: &Task) -> TokenStream {
    let krate = krate(task, Span::call_site());
    let (cfgs, allow, visibility) = (cfgs(task), allow(), &task.function.visibility);
    let (name, definition, function) = (generated("task", task), definition_name(task), task.base());
    let summary = format!(" The task [`{function}`](fn@{function}), for a worker's `.tasks([..])`.");
    quote! {
        #[doc = #summary]
        #cfgs #allow
        #visibility const fn #name() -> #krate::Task {
            #krate::Task::of(&#definition)
        }
    }
}

/// The payload parameters, as `enqueue_x` takes them.
fn arguments(task: &Task) -> TokenStream {
    task.payload()
        .map(|parameter| {
            let (name, of_type) = (&parameter.name, &parameter.of_type);
            quote!(#name: #of_type,)
        })
        .collect()
}

/// `Enqueue<T>`, with the span of the return type: what is wrong with that is reported there, once.
fn enqueued(task: &Task) -> TokenStream {
    let returned = returned_type(task);
    let at = At::of(&returned);
    let value = match (written_value(&returned), bare(&returned)) {
        (Some(value), _) => value.to_token_stream(),
        (None, Type::Path(_)) if is_no_result(&returned) => returned.to_token_stream(),
        // An alias, which only the compiler sees through.
        (None, Type::Path(_)) => {
            let (private, value) = (at.private(task), Ident::new("Value", at.end));
            quote_spanned!(at.start=> <#returned as #private::TaskReturn>::#value)
        }
        // `()`, or what was refused, so that this is for a stub.
        _ => quote!(()),
    };
    let krate = krate(task, at.start);
    let queue = task.settings.written("any_queue").map(|_| quote_spanned!(at.start=> , #krate::AnyQueue));
    let close = Token![>](at.end);
    quote_spanned!(at.start=> #krate::Enqueue<#value #queue #close)
}

fn returned_type(task: &Task) -> Type {
    match &task.function.signature.output {
        ReturnType::Default => Type::Tuple(syn::parse_quote!(())),
        ReturnType::Type(_, of_type) => (**of_type).clone(),
    }
}

/// The `T` of a type that reads `Result<T, …>`.
fn written_value(returned: &Type) -> Option<&Type> {
    let Type::Path(path) = bare(returned) else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "Result")?;
    let PathArguments::AngleBracketed(generics) = &last.arguments else { return None };
    match generics.args.first()? {
        GenericArgument::Type(value) => Some(value),
        _ => None,
    }
}

/// `enqueue_x` or `task_x`, so that an editor leads from it to the function.
fn generated(prefix: &str, task: &Task) -> Ident {
    format_ident!("{prefix}_{}", task.base(), span = task.function.signature.ident.span())
}

fn docs(task: &Task) -> TokenStream {
    let docs: Vec<_> =
        task.function.attributes.iter().filter(|attribute| attribute.path().is_ident("doc")).collect();
    if docs.is_empty() { TokenStream::new() } else { quote!(#[doc = ""] #(#docs)*) }
}
