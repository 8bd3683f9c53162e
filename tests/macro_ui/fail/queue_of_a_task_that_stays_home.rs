//! Only a task with `any_queue` may be enqueued elsewhere.

#[flexiq::task]
async fn tidy() {}

fn call(queue: &flexiq::Queue) {
    let _call = enqueue_tidy(queue).queue("night");
}

fn main() {}
