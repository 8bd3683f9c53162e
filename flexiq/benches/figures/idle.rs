//! What a worker costs that has nothing to do.

use std::time::Duration;

use flexiq::Queue;

use crate::figure::{Figure, Reach};
use crate::raw::Raw;
use crate::redis_server::Server;

/// Some heartbeats, and more than the longest sleep.
const LOOK: Duration = Duration::from_secs(12);

#[flexiq::task(queue = "idle")]
async fn never() {}

pub(crate) fn worker() -> flexiq::Result<Vec<Figure>> {
    let server = Server::start();
    let (sent, cpu) = crate::runtime().block_on(async {
        let raw = Raw::open(&server).await;
        let queue = Queue::open(server.tcp_url()).await?;
        let worker = queue.worker().tasks([task_never()]).start().await?;
        // Let it find nothing to do, beat, and sleep its longest sleep once: a new server is brought each script with its
        // first call.
        tokio::time::sleep(LOOK).await;
        let (before, cpu_before) = (raw.usage().await, own_cpu());
        tokio::time::sleep(LOOK).await;
        let cpu = own_cpu().zip(cpu_before).map(|(after, before)| after - before);
        let sent = raw.usage().await.since(&before).sent();
        worker.shutdown().await?;
        Ok::<_, flexiq::Error>((sent, cpu))
    })?;
    let mut figures = vec![Figure {
        name: "commands of an idle worker per second and queue, Redis".into(),
        value: sent / LOOK.as_secs_f64(),
        unit: "/s",
        yardstick: None,
        reach: Reach::AtMost(1.0),
    }];
    figures.extend(cpu.map(|cpu| Figure {
        name: "share of a core of an idle worker, Redis".into(),
        value: cpu.as_secs_f64() / LOOK.as_secs_f64() * 100.0,
        unit: "%",
        yardstick: None,
        reach: Reach::AtMost(0.2),
    }));
    Ok(figures)
}

/// CPU that the living threads of this process have taken, where the system tells.
fn own_cpu() -> Option<Duration> {
    let threads = std::fs::read_dir("/proc/self/task").ok()?;
    let taken = threads.filter_map(|thread| {
        let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Some(Duration::from_nanos(taken.sum()))
}
