//! The `#[task]` attribute of flexiq, which users reach as `flexiq::task`; and what stands behind
//! `flexiq::testing::assert_enqueued!`.
//!
//! The attribute has four rooms: `parse` splits the tokens, `model` says what a task is, `check` knows which parts do not go
//! together, `expand` writes the code. Each problem is a message at the token that the user typed; all of them come
//! at once, beside the function as it stands and an `enqueue_*` of the right type, so that one mistake gives one
//! message.

mod assert_enqueued;
mod check;
#[path = "../../flexiq/src/policy/pattern.rs"]
#[allow(unreachable_pub, reason = "the runtime's own visibility")]
mod cron;
mod expand;
mod model;
#[path = "../../flexiq/src/policy/near.rs"]
#[allow(unreachable_pub, reason = "the runtime's own visibility")]
mod near;
#[path = "../../flexiq/src/policy/notation.rs"]
#[allow(dead_code, unreachable_pub, reason = "the runtime uses more of it")]
mod notation;
mod parse;
mod problems;
mod settings;
mod types;
mod values;

use proc_macro::TokenStream;

#[doc = include_str!("task.md")]
#[proc_macro_attribute]
pub fn task(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let item: proc_macro2::TokenStream = item.into();
    let mut problems = problems::Problems::default();
    let arguments = parse::arguments(arguments.into(), &mut problems);
    let Some(function) = parse::function(&item, &mut problems) else {
        let messages = problems.into_messages();
        return quote::quote!(#item #messages).into();
    };
    let task = model::Task::read(arguments, function, &mut problems);
    check::task(&task, &mut problems);
    if problems.is_empty() { expand::task(&task).into() } else { expand::stub(&task, problems).into() }
}

/// What `flexiq::testing::assert_enqueued!` calls, with the path to flexiq.
#[doc(hidden)]
#[proc_macro]
pub fn assert_enqueued_in(input: TokenStream) -> TokenStream {
    assert_enqueued::expand(input.into()).into()
}
