// Five mistakes, five messages: the function and `enqueue_build` are there all the same.
#![allow(unused)]

#[flexiq::task(rate_limit = "100/x", timeout = "5", quue = "reports", max_concurrent = 0)]
async fn build(month: &str, copies: u8) -> Result<u8, String> {
    Ok(copies)
}

async fn call(queue: &flexiq::Queue) -> flexiq::Result<flexiq::JobHandle<u8>> {
    let _ = build("10", 1).await;
    enqueue_build(queue, "10", 1).await
}

fn main() {}
