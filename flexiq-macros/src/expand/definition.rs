//! The definition: every setting as a literal of the runtime's own types.

use std::time::Duration;

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote, quote_spanned};

use super::parts::{At, allow, cfgs, constant, definition_name};
use super::run::{key_function, run};
use crate::model::{Parameter, Role, Task};
use crate::notation::{Backoff, Rate};

/// The hidden static that holds all that is known of the task, handed to `inventory`.
pub(super) fn definition(task: &Task) -> TokenStream {
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

fn constants_of(task: &Task, wanted: impl Fn(&Parameter) -> bool) -> Vec<Ident> {
    let wanted = task.parameters.iter().enumerate().filter(|(_, parameter)| wanted(parameter));
    wanted.map(|(index, _)| constant(task, index)).collect()
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
