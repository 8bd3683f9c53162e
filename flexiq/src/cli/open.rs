//! Opening the store that is meant. It is never created.

use super::failure::Failure;
use crate::queue::Queue;

pub(super) async fn open(url: Option<String>) -> Result<Queue, Failure> {
    let named = || std::env::var("FLEXIQ_URL").ok().filter(|url| !url.is_empty());
    let Some(url) = url.or_else(named) else {
        let text = "no store is named: write --url sqlite://jobs.db or redis://host, or set FLEXIQ_URL";
        return Err(Failure::Usage(text.into()));
    };
    Ok(Queue::builder(url).must_exist().open().await?)
}
