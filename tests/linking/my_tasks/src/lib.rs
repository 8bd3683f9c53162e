//! Two tasks, in a crate that a worker links by `use my_tasks as _;`, and that is strict about lints.

#![forbid(unsafe_code)]
#![deny(warnings, missing_docs, clippy::all, clippy::pedantic)]

/// Greets, see [`inner::part`].
///
/// # Errors
///
/// Never.
#[flexiq::task(queue = "greetings")]
pub async fn greet(name: String) -> Result<String, String> {
    std::future::ready(()).await;
    Ok(format!("hello {name}"))
}

/// Parts that nothing names either.
pub mod inner {
    /// Says goodbye.
    #[flexiq::task]
    pub fn part() {}
}
