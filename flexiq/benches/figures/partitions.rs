//! What a claim costs when many partitions of a task wait.

use std::time::Duration;

use flexiq::internals::{Claim, Declared, Enqueue, Hello, Limits, Room, Turn, WorkerId};
use flexiq::{JobId, Queue};

use crate::claim::{EACH, claim_all, job, name};
use crate::figure::{Figure, Reach, median};
use crate::redis_server::Server;

const MANY: usize = 100_000;
const FEW: usize = 100;

pub(crate) fn on_sqlite() -> flexiq::Result<Vec<Figure>> {
    measured("SQLite", || "sqlite::memory:".into())
}

pub(crate) fn on_redis() -> flexiq::Result<Vec<Figure>> {
    let server = Server::start();
    measured("Redis", || format!("{}?prefix=partitions-{}", server.tcp_url(), JobId::new()))
}

fn measured(place: &str, url: impl Fn() -> String) -> flexiq::Result<Vec<Figure>> {
    let (mut many, mut few) = (Vec::new(), Vec::new());
    for _ in 0..crate::runs(3) {
        few.push(crate::runtime().block_on(claims(&url(), FEW))?);
        many.push(crate::runtime().block_on(claims(&url(), MANY))?);
    }
    Ok(vec![Figure {
        name: format!("claim of 100 with 100,000 partitions waiting, to 100, {place}"),
        value: median(&many),
        unit: "µs",
        yardstick: Some(median(&few)),
        reach: Reach::AtMost(1.3),
    }])
}

/// The median time of a claim, in microseconds, with so many partitions waiting, each with a cap that is not reached.
async fn claims(url: &str, partitions: usize) -> flexiq::Result<f64> {
    let queue = Queue::open(url).await?;
    let (store, worker) = (queue.below(), WorkerId::new());
    store.register(hello(worker)).await?;
    for first in (0..MANY).step_by(10_000) {
        let job = |number: usize| job("export", format!("customer-{}", number % partitions));
        let jobs = (first..first + 10_000).map(job).collect();
        store.enqueue(Enqueue { queue: name("parted"), jobs, max_pending: None, producer: None }).await?;
    }
    Ok(median(&claim_all(&queue, |number| turn(worker, number)).await?))
}

fn hello(worker: WorkerId) -> Hello {
    let declared = Declared {
        task: name("export"),
        queue: name("parted"),
        json: "{}".into(),
        limits: Limits::default(),
        per_partition: Limits { max_concurrent: Some(1_000), ..Limits::default() },
        schedule: None,
    };
    Hello {
        worker,
        label: "bench:1".into(),
        lease: Duration::from_secs(60),
        queues: vec![(name("parted"), Limits::default())],
        tasks: vec![declared],
    }
}

fn turn(worker: WorkerId, number: u64) -> Turn {
    let room = Room { task: name("export"), slot: 0, at_most: EACH, max_losses: 3 };
    let claim = Claim { slots: vec![EACH], tasks: vec![room], lease: Duration::from_secs(60) };
    Turn { worker, queue: name("parted"), number, finishes: Vec::new(), claim: Some(claim) }
}
