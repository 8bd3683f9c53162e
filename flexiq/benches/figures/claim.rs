//! What a claim costs when many tasks have something waiting.

use std::sync::Arc;
use std::time::{Duration, Instant};

use flexiq::internals::{Claim, Due, Enqueue, Name, NewJob, Outset, Payload, Room, Turn, WorkerId};
use flexiq::{JobId, Queue};

use crate::figure::{Figure, Reach, median};
use crate::raw::Raw;
use crate::redis_server::Server;

const TASKS: usize = 100;
const CLAIMS: u64 = 50;
/// So many jobs does each claim take.
pub(crate) const EACH: u32 = 100;

pub(crate) fn of_many_tasks() -> flexiq::Result<Vec<Figure>> {
    measured("SQLite", || "sqlite::memory:".into())
}

/// On Redis also by the server's processor time, which other programs of the machine disturb less.
pub(crate) fn of_many_tasks_on_redis() -> flexiq::Result<Vec<Figure>> {
    let server = Server::start();
    let url = || format!("{}?prefix=claims-{}", server.tcp_url(), JobId::new());
    let mut figures = measured("Redis", url)?;
    let cpu = |waiting| {
        crate::runtime().block_on(async {
            let raw = Raw::open(&server).await;
            let mut each = Vec::new();
            for _ in 0..crate::runs(5) {
                let (queue, worker) = (filled(&url(), waiting).await?, WorkerId::new());
                let before = raw.usage().await;
                claim_all(&queue, |number| turn(worker, number)).await?;
                each.push(raw.usage().await.since(&before).cpu / CLAIMS as f64);
            }
            Ok::<_, flexiq::Error>(median(&each))
        })
    };
    figures.push(Figure {
        name: "Redis CPU of such a claim, to one".into(),
        value: cpu(TASKS)?,
        unit: "µs",
        yardstick: Some(cpu(1)?),
        reach: Reach::AtMost(2.0),
    });
    Ok(figures)
}

fn measured(place: &str, url: impl Fn() -> String) -> flexiq::Result<Vec<Figure>> {
    let (mut many, mut one) = (Vec::new(), Vec::new());
    for _ in 0..crate::runs(5) {
        one.push(crate::runtime().block_on(claims(&url(), 1))?);
        many.push(crate::runtime().block_on(claims(&url(), TASKS))?);
    }
    Ok(vec![Figure {
        name: format!("claim of 100 with 100 tasks waiting, to one, {place}"),
        value: median(&many),
        unit: "µs",
        yardstick: Some(median(&one)),
        reach: Reach::AtMost(2.0),
    }])
}

/// The median time of a claim, in microseconds, with so many tasks waiting of the hundred that the worker has linked.
async fn claims(url: &str, waiting: usize) -> flexiq::Result<f64> {
    let queue = filled(url, waiting).await?;
    let worker = WorkerId::new();
    Ok(median(&claim_all(&queue, |number| turn(worker, number)).await?))
}

/// A queue with more than will be claimed, so that every task waits to the end.
async fn filled(url: &str, waiting: usize) -> flexiq::Result<Queue> {
    let queue = Queue::open(url).await?;
    for _ in 0..=CLAIMS as usize * EACH as usize / 1_000 {
        queue.below().enqueue(batch(waiting)).await?;
    }
    Ok(queue)
}

/// The time of each claim, in microseconds.
pub(crate) async fn claim_all(queue: &Queue, turn: impl Fn(u64) -> Turn) -> flexiq::Result<Vec<f64>> {
    let store = queue.below();
    let mut took = Vec::new();
    for number in 1..=CLAIMS {
        let turn = Arc::new(turn(number));
        let begun = Instant::now();
        let answer = store.turn(turn).await?;
        took.push(begun.elapsed().as_secs_f64() * 1e6);
        assert_eq!(answer.claimed.len(), EACH as usize);
    }
    Ok(took)
}

pub(crate) fn name(text: &str) -> Name {
    Name::new("name", text).expect("it is a name")
}

pub(crate) fn job(task: &str, partition: String) -> NewJob {
    NewJob {
        id: JobId::new(),
        task: name(task),
        partition,
        max_pending_per_partition: None,
        payload: Payload { codec: 0, bytes: vec![b'x'; 100] },
        priority: 0,
        due: Due::NOW,
        expires: None,
        outset: Outset::default(),
        unique: None,
        is_given: false,
    }
}

/// A thousand jobs, shared out among the tasks.
fn batch(tasks: usize) -> Enqueue {
    let job = |number: usize| job(&format!("task-{}", number % tasks), String::new());
    Enqueue { queue: name("claims"), jobs: (0..1_000).map(job).collect(), max_pending: None, producer: None }
}

fn turn(worker: WorkerId, number: u64) -> Turn {
    let room = |task| Room { task: name(&format!("task-{task}")), slot: 0, at_most: EACH, max_losses: 3 };
    let claim =
        Claim { slots: vec![EACH], tasks: (0..TASKS).map(room).collect(), lease: Duration::from_secs(60) };
    Turn { worker, queue: name("claims"), number, finishes: Vec::new(), claim: Some(claim) }
}
