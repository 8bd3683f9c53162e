//! Workers and producers in processes of their own, for tests that kill them and read their ledgers.
//!
//! ```text
//! faults-crew work  URL LEDGER QUEUE      a worker of 8 slots with a lease of 2 s, until SIGTERM
//! faults-crew idle  URL LEDGER            the same with 100 slots and the usual lease, of the queue "burst"
//! faults-crew store URL LEDGER            a producer: calls and batches, one after the other, until it is killed
//! faults-crew again URL LEDGER FOLDER     a producer that sends once more what the ledgers of a folder leave unknown
//! faults-crew press URL LEDGER PENDING N  eight threads that press N jobs each on a queue that takes PENDING
//! faults-crew queue URL LEDGER PENDING N  the same, and each waits until there is room
//! ```

use std::path::Path;
use std::time::Duration;

use flexiq::{Context, Effect, Error, JobId, Queue, Retry};
use flexiq_tests::ledger::{Answer, Call, History, Line, Pen};

const LEASE: Duration = Duration::from_secs(2);
/// Longer than any test.
const PATIENCE: Duration = Duration::from_secs(300);

/// Killed often, and never dead of it.
#[flexiq::task(queue = "kill-loop", max_losses = 1_000_000, result_ttl = "1d")]
async fn short(#[state] pen: Pen, #[context] context: Context, millis: u64) {
    write_down(&pen, &context, millis).await;
}

#[flexiq::task(queue = "kill-loop", max_losses = 1_000_000, result_ttl = "1d")]
fn plain(#[state] pen: Pen, #[context] context: Context, millis: u64) {
    context.block_on(write_down(&pen, &context, millis));
}

#[flexiq::task(queue = "kill-loop", max_losses = 1_000_000, result_ttl = "1d", max_concurrent = 3)]
async fn capped(#[state] pen: Pen, #[context] context: Context, millis: u64) {
    write_down(&pen, &context, millis).await;
}

#[flexiq::task(queue = "kill-loop", max_losses = 1_000_000, result_ttl = "1d", rate_limit = "40/s")]
async fn rated(#[state] pen: Pen, #[context] context: Context, millis: u64) {
    write_down(&pen, &context, millis).await;
}

#[flexiq::task(queue = "fleet", max_losses = 1_000_000, result_ttl = "1d", max_concurrent = 5)]
async fn five(#[state] pen: Pen, #[context] context: Context, millis: u64) {
    write_down(&pen, &context, millis).await;
}

#[flexiq::task(queue = "partner", max_losses = 1_000_000, result_ttl = "1d")]
async fn shared(#[state] pen: Pen, #[context] context: Context, millis: u64) -> Result<(), Retry> {
    let _permit = context.limit("partner").concurrency(2).acquire().await?;
    write_down(&pen, &context, millis).await;
    Ok(())
}

#[flexiq::task(queue = "burst")]
async fn loose(#[state] pen: Pen, #[context] context: Context, millis: u64) {
    write_down(&pen, &context, millis).await;
}

async fn write_down(pen: &Pen, context: &Context, millis: u64) {
    pen.start(context);
    tokio::time::sleep(Duration::from_millis(millis)).await;
    pen.end(context);
}

/// Stored, and never run.
#[flexiq::task(queue = "kept")]
async fn kept(_number: usize) {}

/// In a queue that is soon full.
#[flexiq::task(queue = "narrow")]
async fn pressed() {}

#[tokio::main]
async fn main() -> flexiq::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["work", url, ledger, queue] => work(url, &pen(ledger), queue).await,
        ["idle", url, ledger] => idle(url, &pen(ledger)).await,
        ["store", url, ledger] => store(url, &pen(ledger)).await,
        ["again", url, ledger, folder] => again(url, &pen(ledger), Path::new(folder)).await,
        ["press", url, ledger, pending, jobs] => {
            press(url, &pen(ledger), number(pending), number(jobs), Duration::ZERO)
        }
        ["queue", url, ledger, pending, jobs] => {
            press(url, &pen(ledger), number(pending), number(jobs), PATIENCE)
        }
        _ => {
            eprintln!("usage: faults-crew work|idle|store|again|press|queue URL LEDGER …");
            std::process::exit(2);
        }
    }
}

fn pen(path: &str) -> Pen {
    Pen::open(Path::new(path)).expect("the ledger can be opened")
}

fn number(text: &str) -> usize {
    text.parse().expect("a number")
}

async fn work(url: &str, pen: &Pen, queue: &str) -> flexiq::Result<()> {
    let worker = Queue::open(url).await?.worker().state(pen.clone()).queues([queue]);
    worker.async_concurrency(6).workers(2).lease(LEASE).run().await
}

async fn idle(url: &str, pen: &Pen) -> flexiq::Result<()> {
    let worker = Queue::open(url).await?.worker().state(pen.clone()).queues(["burst"]);
    worker.async_concurrency(100).run().await
}

async fn store(url: &str, pen: &Pen) -> flexiq::Result<()> {
    let queue = Queue::open(url).await?;
    for call in 0_usize.. {
        // Every other call is a batch, of up to 256 jobs.
        let jobs = if call % 2 == 0 { 1 } else { 1 << (call / 2 % 9) };
        send(&queue, pen, &(0..jobs).map(|_| JobId::new()).collect::<Vec<_>>()).await?;
    }
    Ok(())
}

/// Sends one job by itself, and more as a batch.
async fn send(queue: &Queue, pen: &Pen, jobs: &[JobId]) -> flexiq::Result<()> {
    let call = pen.intend(jobs);
    let sent = match jobs {
        [job] => enqueue_kept(queue, 0).id(*job).await.map(drop),
        jobs => {
            let calls = jobs.iter().enumerate().map(|(number, job)| enqueue_kept(queue, number).id(*job));
            queue.enqueue_many(calls).await.map(drop)
        }
    };
    told(pen, call, sent)
}

/// Writes down what became of a call.
fn told(pen: &Pen, call: JobId, sent: flexiq::Result<()>) -> flexiq::Result<()> {
    match sent {
        Ok(()) => pen.write(&Line::Stored { call }),
        Err(Error::QueueFull { .. } | Error::StoreUnavailable { effect: Effect::None, .. }) => {
            pen.write(&Line::Refused { call });
        }
        Err(Error::StoreUnavailable { .. }) => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

async fn again(url: &str, pen: &Pen, folder: &Path) -> flexiq::Result<()> {
    let history = History::read(folder).expect("the ledgers can be read");
    let queue = Queue::open(url).await?;
    for Call { jobs, answer } in history.calls {
        if answer == Answer::Unknown {
            send(&queue, pen, &jobs).await?;
        }
    }
    Ok(())
}

fn press(url: &str, pen: &Pen, pending: usize, jobs: usize, patience: Duration) -> flexiq::Result<()> {
    let queue = Queue::builder(url).max_pending("narrow", pending as u64).open().blocking()?;
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| press_alone(&queue, pen, jobs, patience))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("it does not panic"))
    })
}

/// Presses jobs until so many were sent, stored or not: by themselves and in batches of up to 64.
fn press_alone(queue: &Queue, pen: &Pen, jobs: usize, patience: Duration) -> flexiq::Result<()> {
    let mut sent = 0;
    for call in 0_usize.. {
        let batch: Vec<JobId> = (0..1 << (call % 7)).map(|_| JobId::new()).collect();
        let intent = pen.intend(&batch);
        let answer = match batch.as_slice() {
            [job] => enqueue_pressed(queue).id(*job).or_wait(patience).blocking().map(drop),
            jobs => queue
                .enqueue_many(jobs.iter().map(|job| enqueue_pressed(queue).id(*job).or_wait(patience)))
                .blocking()
                .map(drop),
        };
        let is_full = matches!(answer, Err(Error::QueueFull { .. }));
        told(pen, intent, answer)?;
        if is_full {
            // Leave the workers a little room.
            std::thread::sleep(Duration::from_millis(1));
        }
        sent += batch.len();
        if sent >= jobs {
            break;
        }
    }
    Ok(())
}
