//! A worker in a process of its own, for tests that kill it: `faults-worker URL LEASE_MS GRACE_MS`.
//!
//! Its tasks tell what they do on standard output, a line each.

use std::time::Duration;

use flexiq::{Context, Queue};

#[flexiq::task]
async fn quick(#[context] context: Context) {
    println!("quick {} {}", context.job_id(), context.run());
}

/// Sleeps for ten minutes, on a thread, whatever it is told.
#[flexiq::task]
fn sleeper(#[context] context: Context) {
    println!("sleeper {} {}", context.job_id(), context.run());
    std::thread::sleep(Duration::from_secs(600));
}

/// Never ends, and can be dropped.
#[flexiq::task]
async fn stuck(#[context] context: Context) {
    println!("stuck {} {}", context.job_id(), context.run());
    std::future::pending::<()>().await;
}

/// Takes its process with it.
#[flexiq::task(max_losses = 1)]
async fn poison(#[context] context: Context) {
    println!("poison {} {}", context.job_id(), context.run());
    std::process::abort();
}

#[tokio::main]
async fn main() -> flexiq::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, lease, grace] = arguments.as_slice() else {
        eprintln!("usage: faults-worker URL LEASE_MS GRACE_MS");
        std::process::exit(2);
    };
    let millis = |text: &String| Duration::from_millis(text.parse().expect("a number of milliseconds"));
    let queue = Queue::open(url.as_str()).await?;
    queue.worker().workers(4).lease(millis(lease)).grace(millis(grace)).run().await?;
    println!("ended");
    Ok(())
}
