//! Writes the code: the function as it stands, `enqueue_x` and `task_x`, and the hidden definition.
//!
//! Every type of the user's is bounded in one place, a hidden constant whose tokens carry the type's span, so that a
//! type which does not fit gives one message there. Local names are hygienic; hidden items begin with `__FLEXIQ_`.

use std::time::Duration;

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Attribute, Expr, GenericArgument, Meta, PathArguments, ReturnType, Token, Type};

use crate::check::{bare, is_no_result};
use crate::model::{DefaultValue, Parameter, Role, Task};
use crate::notation::{Backoff, Rate};
use crate::problems::Problems;

/// Code whose local names are its own: the user's expressions beside it do not see them.
macro_rules! local_quote {
    ($($tokens:tt)*) => { quote_spanned!(Span::mixed_site()=> $($tokens)*) };
}

/// The expansion of a task without problems.
pub(crate) fn task(task: &Task) -> TokenStream {
    let function = function(task);
    let constants = constants(task);
    let definition = definition(task);
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
    let name = format_ident!("__FLEXIQ_{}_return", task.base());
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

fn definition(task: &Task) -> TokenStream {
    let private = At::call_site().private(task);
    let (cfgs, allow, name) = (cfgs(task), allow(), definition_name(task));
    let stored_name = task.name();
    let settings = &task.settings;
    let queue = settings.queue.as_deref().unwrap_or("default");
    let any_queue = settings.any_queue;
    let kind = if task.function.signature.asyncness.is_some() { quote!(Async) } else { quote!(Plain) };
    let line = {
        // At the function's name, since an attribute's own line is where its arguments begin.
        let span = task.function.signature.ident.span();
        quote_spanned!(span=> ::core::line!())
    };
    let parameters = constants_of(task, Parameter::is_payload);
    let states = constants_of(task, |parameter| matches!(parameter.role, Role::State));
    let rates = rates(&settings.rates, &private);
    let rates_each = rates_each(task, &private);
    let partition = settings.partition_by.as_ref().map(|expr| key_function("partition", expr, task));
    let unique = settings.unique_by.as_ref().map(|expr| key_function("unique", expr, task));
    let max_concurrent = option(settings.max_concurrent.map(number_u32));
    let max_in_flight = option(settings.max_in_flight_per_task.map(number_u32));
    let per_partition = option(settings.partition_by.as_ref().map(|_| {
        let max_concurrent = option(settings.max_concurrent_per_partition.map(number_u32));
        let max_pending = option(settings.max_pending_per_partition);
        quote! {
            #private::PerPartition {
                key: __flexiq_partition,
                max_concurrent: #max_concurrent,
                rates: __FLEXIQ_RATES_EACH,
                max_pending: #max_pending,
            }
        }
    }));
    let (max_retries, max_losses) = (settings.max_retries.unwrap_or(10), settings.max_losses.unwrap_or(3));
    let (backoff, max_deferrals) =
        (backoff(settings.retry_backoff, &private), option(settings.max_deferrals));
    let timeout = option(settings.timeout.map(duration));
    let expires = option(settings.expires.map(duration));
    let result_ttl = option(settings.result_ttl.map(duration));
    let priority = settings.priority;
    let is_unique = settings.written("unique").is_some() || settings.unique_by.is_some();
    let unique_until = if settings.until_start { quote!(Start) } else { quote!(Finish) };
    let unique_key = option(settings.unique_by.as_ref().map(|_| quote!(__flexiq_unique)));
    let unique_field =
        option(is_unique.then(
            || quote!(#private::Unique { key: #unique_key, until: #private::UniqueUntil::#unique_until }),
        ));
    let cron = option(settings.cron.as_ref().map(|pattern| {
        let timezone = settings.timezone.as_deref().unwrap_or("UTC");
        let catch_up = settings.catch_up;
        quote!(#private::Cron { pattern: #pattern, timezone: #timezone, catch_up: #catch_up })
    }));
    let run = run(task);
    quote! {
        #cfgs #allow
        static #name: #private::TaskDefinition = {
            const __FLEXIQ_PARAMETERS: &[#private::Parameter] = &[#(#parameters.parameter()),*];
            const __FLEXIQ_STATES: &[#private::StateNeed] = &[#(#states.need()),*];
            const __FLEXIQ_RATES: &[#private::Rate] = #rates;
            #rates_each
            #partition
            #unique
            #run
            #private::TaskDefinition {
                name: #stored_name,
                queue: #queue,
                any_queue: #any_queue,
                place: #private::Place {
                    module: ::core::module_path!(),
                    file: ::core::file!(),
                    line: #line,
                },
                kind: #private::Kind::#kind,
                parameters: __FLEXIQ_PARAMETERS,
                states: __FLEXIQ_STATES,
                max_concurrent: #max_concurrent,
                max_in_flight_per_task: #max_in_flight,
                rates: __FLEXIQ_RATES,
                partition: #per_partition,
                budgets: #private::Budgets {
                    max_retries: #max_retries,
                    backoff: #backoff,
                    max_deferrals: #max_deferrals,
                    max_losses: #max_losses,
                },
                timeout: #timeout,
                expires: #expires,
                result_ttl: #result_ttl,
                priority: #priority,
                unique: #unique_field,
                cron: #cron,
                run: __flexiq_run,
            }
        };
        #cfgs
        #private::inventory::submit! { #private::Entry(&#name) }
    }
}

/// Decodes the payload and prepares one run.
fn run(task: &Task) -> TokenStream {
    let private = At::call_site().private(task);
    let definition = definition_name(task);
    let function = &task.function.signature.ident;
    let returns = format_ident!("__FLEXIQ_{}_return", task.base());
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
fn key_function(what: &str, expr: &Expr, task: &Task) -> TokenStream {
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
        #visibility fn #name() -> #krate::Task {
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

fn constants_of(task: &Task, wanted: impl Fn(&Parameter) -> bool) -> Vec<Ident> {
    let wanted = task.parameters.iter().enumerate().filter(|(_, parameter)| wanted(parameter));
    wanted.map(|(index, _)| constant(task, index)).collect()
}

fn constant(task: &Task, index: usize) -> Ident {
    format_ident!("__FLEXIQ_{}_{index}", task.base(), span = Span::call_site())
}

fn definition_name(task: &Task) -> Ident {
    format_ident!("__FLEXIQ_TASK_{}", task.base(), span = Span::call_site())
}

/// `enqueue_x` or `task_x`, so that an editor leads from it to the function.
fn generated(prefix: &str, task: &Task) -> Ident {
    format_ident!("{prefix}_{}", task.base(), span = task.function.signature.ident.span())
}

/// The function's `#[cfg]`s, also those in a `#[cfg_attr]`: what is generated comes and goes with it.
fn cfgs(task: &Task) -> TokenStream {
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

fn docs(task: &Task) -> TokenStream {
    let docs: Vec<_> =
        task.function.attributes.iter().filter(|attribute| attribute.path().is_ident("doc")).collect();
    if docs.is_empty() { TokenStream::new() } else { quote!(#[doc = ""] #(#docs)*) }
}

/// Generated code answers to no lint of the user's.
fn allow() -> TokenStream {
    quote! {
        #[allow(
            dead_code, deprecated, non_upper_case_globals, private_interfaces, unreachable_pub, unused_parens,
            unused_qualifications, unused_variables, clippy::all, clippy::nursery, clippy::pedantic,
            clippy::restriction
        )]
    }
}

fn krate(task: &Task, span: Span) -> TokenStream {
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
struct At {
    start: Span,
    end: Span,
}

impl At {
    fn of(tokens: &impl ToTokens) -> Self {
        let mut tokens = tokens.to_token_stream().into_iter().map(|token| token.span());
        let start = tokens.next().unwrap_or_else(Span::call_site);
        Self { start, end: tokens.last().unwrap_or(start) }
    }

    fn call_site() -> Self {
        Self { start: Span::call_site(), end: Span::call_site() }
    }

    /// `::flexiq::__private`.
    fn private(&self, task: &Task) -> TokenStream {
        let (krate, start) = (krate(task, self.start), self.start);
        quote_spanned!(start=> #krate::__private)
    }
}

fn option(value: Option<impl ToTokens>) -> TokenStream {
    match value {
        Some(value) => quote!(::core::option::Option::Some(#value)),
        None => quote!(::core::option::Option::None),
    }
}

fn number_u32(number: u64) -> u32 {
    u32::try_from(number).expect("checked to be at most u32::MAX")
}

fn duration(duration: Duration) -> TokenStream {
    let ms = u64::try_from(duration.as_millis()).expect("a notation holds at most 100 years");
    quote!(::core::time::Duration::from_millis(#ms))
}

fn rates(rates: &[Rate], private: &TokenStream) -> TokenStream {
    let rates = rates.iter().map(|rate| {
        let (starts, period, spread) = (rate.starts, duration(rate.period), rate.spread);
        quote!(#private::Rate { starts: #starts, period: #period, spread: #spread })
    });
    quote!(&[#(#rates),*])
}

fn rates_each(task: &Task, private: &TokenStream) -> TokenStream {
    if task.settings.partition_by.is_none() {
        return TokenStream::new();
    }
    let rates = rates(&task.settings.rates_per_partition, private);
    quote!(const __FLEXIQ_RATES_EACH: &[#private::Rate] = #rates;)
}

fn backoff(backoff: Option<Backoff>, private: &TokenStream) -> TokenStream {
    match backoff {
        None => quote!(#private::Budgets::DEFAULT.backoff),
        Some(Backoff::Fixed(wait)) => {
            let wait = duration(wait);
            quote!(#private::Backoff::Fixed(#wait))
        }
        Some(Backoff::Doubling { first, largest }) => {
            let (first, largest) = (duration(first), duration(largest));
            quote!(#private::Backoff::Doubling { first: #first, largest: #largest })
        }
    }
}
