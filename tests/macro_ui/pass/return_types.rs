#![deny(warnings)]

use flexiq::{Enqueue, Queue, Retry};

mod shop {
    pub type Result<T> = std::result::Result<T, std::io::Error>;
    pub type Done = std::result::Result<(), String>;
}

#[flexiq::task]
async fn unit() -> () {}

#[flexiq::task]
async fn with_anyhow() -> anyhow::Result<u8> {
    Ok(1)
}

#[flexiq::task]
async fn with_alias() -> shop::Result<Option<u8>> {
    Ok(None)
}

#[flexiq::task]
async fn with_hidden_alias() -> shop::Done {
    Ok(())
}

#[flexiq::task]
fn with_text() -> std::result::Result<&'static str, &'static str> {
    Ok("fine")
}

#[flexiq::task]
fn with_retry(pages: String) -> Result<u8, Retry> {
    pages.parse().map_err(Retry::never)
}

fn calls(queue: &Queue) -> (Enqueue<()>, Enqueue<u8>, Enqueue<Option<u8>>, Enqueue<()>, Enqueue<&'static str>, Enqueue<u8>) {
    (
        enqueue_unit(queue),
        enqueue_with_anyhow(queue),
        enqueue_with_alias(queue),
        enqueue_with_hidden_alias(queue),
        enqueue_with_text(queue),
        enqueue_with_retry(queue, "7".into()),
    )
}

fn main() {
    let _ = calls;
    assert!(with_retry("x".into()).is_err());
}
