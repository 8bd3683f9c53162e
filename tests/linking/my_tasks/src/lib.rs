//! Two tasks, in a crate that a worker links by `use my_tasks as _;`.

/// Greets.
#[flexiq::task(queue = "greetings")]
pub async fn greet(name: String) -> Result<String, String> {
    Ok(format!("hello {name}"))
}

/// Parts that nothing names either.
pub mod inner {
    /// Says goodbye.
    #[flexiq::task]
    pub fn part() {}
}
