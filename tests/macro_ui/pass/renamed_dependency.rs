#![deny(warnings)]

extern crate flexiq as fq;

mod jobs {
    pub use ::flexiq as queueing;
}

#[fq::task(crate = fq)]
async fn one(a: u8) -> Result<u8, fq::Retry> {
    Ok(a)
}

#[jobs::queueing::task(crate = crate::jobs::queueing, any_queue)]
fn two(#[context] context: fq::Context, a: Vec<u8>) {
    let _ = (context, a);
}

fn call(queue: &fq::Queue) {
    let _ = enqueue_two(queue, vec![]).queue("other");
    let _ = enqueue_one(queue, 1);
}

fn main() {
    let _ = call;
}
