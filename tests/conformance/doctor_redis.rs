//! Keys that were broken by hand: what is wrong is named, repaired, and nothing is lost.

use std::cell::RefCell;

use flexiq::internals::redis::{RedisOptions, RedisStore};
use flexiq::internals::{Change, Clock, Enqueue, ProducerId};
use flexiq::{FindingKind, JobId, State};

use crate::doctor::Scene;
use crate::harness::*;

/// A store, and a connection of somebody else's on its server.
struct Broken {
    bench: Bench,
    scene: Scene,
    raw: RefCell<redis::Connection>,
    prefix: String,
}

const NOBODY: [u8; 16] = [9; 16];

async fn scene() -> Broken {
    let url = flexiq_tests::redis_server::url();
    let (address, prefix) = url.split_once("?prefix=").expect("a store of a test has a prefix");
    let (clock, hands) = Clock::manual(START);
    let mut options = RedisOptions::from_url(&url).expect("the URL is one of Redis");
    options.clock = clock;
    let store = RedisStore::open(options).await.expect("the store opens");
    let bench = Bench::of(store, hands, millis(4), None).await;
    let scene = bench.scene().await;
    let raw = redis::Client::open(address).and_then(|client| client.get_connection());
    Broken { bench, scene, raw: RefCell::new(raw.expect("the server answers")), prefix: prefix.into() }
}

impl Broken {
    /// Sends a command that is about a key of the queue "q".
    fn tell<T: redis::FromRedisValue>(&self, command: &str, key: &str, args: &[&[u8]]) -> T {
        let key = format!("{{{}:q}}:{key}", self.prefix);
        redis::cmd(command)
            .arg(key)
            .arg(args)
            .query(&mut *self.raw.borrow_mut())
            .expect("the server does what it is told")
    }

    /// The same with a key of the limit "api".
    fn tell_limit(&self, command: &str, key: &str, args: &[&[u8]]) {
        let key = format!("{{{}/api}}:{key}", self.prefix);
        let mut raw = self.raw.borrow_mut();
        redis::cmd(command).arg(key).arg(args).exec(&mut *raw).expect("the server does what it is told");
    }

    /// That nothing was found but this and what counts it, that all is repaired, and nothing is found afterwards.
    async fn is_repaired(&self, kind: FindingKind, told: &str) {
        let found = self.bench.look().await;
        assert!(!found.is_empty(), "it is found: {told}");
        let is_it = |of| of == kind || kind == FindingKind::NoLease && of == FindingKind::Count;
        assert!(found.iter().all(|finding| is_it(finding.kind) && !finding.is_repaired), "{found:#?}");
        assert!(found.iter().any(|finding| finding.to_string().contains(told)), "{told}: {found:#?}");
        let repaired = self.bench.repair().await;
        assert!(repaired.iter().all(|finding| finding.is_repaired), "{repaired:#?}");
        assert_eq!(self.bench.look().await, [], "nothing is left of {told:?}");
    }
}

/// A member of the lanes: lane, place and job.
fn place(lane: &[u8], id: &[u8; 16]) -> Vec<u8> {
    [lane, b"\0", &[0, 0, 0, 0, 0, 0, 1], id].concat()
}

#[tokio::test]
async fn counters_are_counted_anew() {
    for (field, by, told) in [
        ("0send", "-1", "the count of jobs that are scheduled is 1, but it should be 2"),
        ("3send", "1", "the count of jobs that are succeeded is 2, but it should be 1"),
        ("6other", "1", "the count of jobs that are expired is 1, but it should be 0"),
    ] {
        let broken = scene().await;
        let counts = broken.bench.store.counts().await.expect("answers");
        let _: i64 = broken.tell("HINCRBY", "counts", &[field.as_bytes(), by.as_bytes()]);
        broken.is_repaired(FindingKind::Count, told).await;
        assert_eq!(broken.bench.store.counts().await.expect("answers"), counts);
        assert_eq!(broken.bench.drain(&["send"]).await, 2);
    }
}

#[tokio::test]
async fn what_is_active_is_counted_anew() {
    let active = |ready: u32, in_partitions: u32, running: u32| {
        [ready, in_partitions, running].map(u32::to_be_bytes).concat()
    };
    for (task, wrong, told) in [
        ("send", active(7, 0, 2), "the count of jobs that are ready is 7, but it should be 2"),
        ("send", active(2, 0, 6), "the count of jobs that are running is 6, but it should be 2"),
        ("part", active(8, 7, 1), "the count of jobs that are ready in partitions is 7, but it should be 8"),
        ("nothing", active(1, 0, 0), "the count of jobs that are ready is 1, but it should be 0"),
        ("send", b"short".to_vec(), "the count of jobs that are ready is 0, but it should be 2"),
    ] {
        let broken = scene().await;
        let counts = broken.bench.store.counts().await.expect("answers");
        let _: i64 = broken.tell("HSET", "active", &[task.as_bytes(), &wrong]);
        broken.is_repaired(FindingKind::Count, told).await;
        assert_eq!(broken.bench.store.counts().await.expect("answers"), counts);
        assert_eq!(broken.bench.drain(&["send"]).await, 2);
    }
}

#[tokio::test]
async fn the_counters_of_partitions_are_counted_anew() {
    let broken = scene().await;
    let record: Vec<u8> = broken.tell("HGET", "partitions", &[b"part\x02\x01a"]);
    let mut wrong = record.clone();
    (wrong[3], wrong[7], wrong[11]) = (9, 8, 7);
    let _: i64 = broken.tell("HSET", "partitions", &[b"part\x02\x01a", &wrong]);
    broken
        .is_repaired(
            FindingKind::Count,
            "the count of jobs of a partition that are running is 8, but it should be 1",
        )
        .await;
    let repaired: Vec<u8> = broken.tell("HGET", "partitions", &[b"part\x02\x01a"]);
    assert_eq!(repaired, record);

    let served = [0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 9];
    let _: i64 = broken.tell("HSET", "partitioned", &[b"part", &served]);
    broken
        .is_repaired(
            FindingKind::Count,
            "the count of jobs that are startable in partitions is 9, but it should be 1",
        )
        .await;
    let _: i64 = broken.tell("ZREM", "leases", &[&[0; 65]]);
    assert_eq!(broken.bench.look().await[0].kind, FindingKind::Count);
    broken.bench.repair().await;
    assert_eq!(broken.bench.look().await, []);
}

#[tokio::test]
async fn a_running_job_without_a_lease_is_found_by_nobody_else_and_gets_one_again() {
    let broken = scene().await;
    let (bench, lease) = (&broken.bench, broken.scene.running);
    let lose = || broken.tell::<i64>("ZREM", "leases", &[lease.job.as_bytes()]);
    assert_eq!(lose(), 1);
    bench.beat(bench.living, &[lease]).await;
    assert_eq!(bench.look().await, [], "whoever runs it brings its lease back");
    assert_eq!(lose(), 1);
    bench.pass(secs(600)).await;
    assert_eq!(bench.state(lease.job).await, State::Running, "nobody else does");
    broken.is_repaired(FindingKind::NoLease, "it is running without a lease").await;
    assert_eq!(bench.state(lease.job).await, State::Running, "its worker may live");
    bench.pass(LEASE + BEAT).await;
    assert_eq!((bench.state(lease.job).await, bench.job(lease.job).await.losses), (State::Ready, 1));
}

#[tokio::test]
async fn a_job_is_put_where_its_state_says() {
    let first = |scene: &Scene| [scene.ready, scene.scheduled, scene.succeeded, scene.expiring];
    for (index, key, kind, told) in [
        (0, "lanes", FindingKind::Place, "it is ready, and stands in no lane"),
        (1, "scheduled", FindingKind::Place, "it is scheduled, and does not stand among those"),
        (2, "succeeded", FindingKind::Place, "does not stand among the succeeded"),
        (3, "expiries", FindingKind::Place, "it can expire, and nobody looks when"),
    ] {
        let broken = scene().await;
        let id = first(&broken.scene)[index];
        let members: Vec<Vec<u8>> = broken.tell("ZRANGE", key, &[b"0", b"-1"]);
        let is_its = |member: &&Vec<u8>| member.windows(16).any(|part| part == id.as_bytes());
        let member = members.iter().find(is_its).expect("it stands there");
        let _: i64 = broken.tell("ZREM", key, &[member]);
        let found = broken.bench.look().await;
        assert!(found.iter().any(|finding| finding.kind == kind && finding.job == Some(id)), "{found:#?}");
        // What counts it by its order sees one less, too.
        let others = found.iter().filter(|finding| finding.kind != kind);
        assert!(others.clone().all(|finding| finding.kind == FindingKind::Count), "{found:#?}");
        assert!(found.iter().any(|finding| finding.to_string().contains(told)), "{found:#?}");
        broken.bench.repair().await;
        assert_eq!(broken.bench.look().await, []);
        let now: Vec<Vec<u8>> = broken.tell("ZRANGE", key, &[b"0", b"-1"]);
        assert_eq!(now, members);
        assert!(broken.bench.drain(&["send"]).await == 2, "{told}");
    }
}

#[tokio::test]
async fn what_goes_with_a_place_is_put_back() {
    let broken = scene().await;
    let called: Vec<Vec<u8>> = broken.tell("SMEMBERS", "called", &[]);
    let _: i64 = broken.tell("DEL", "called", &[]);
    broken.is_repaired(FindingKind::Place, "it is to stop, and nobody tells its worker").await;
    assert_eq!(broken.tell::<Vec<Vec<u8>>>("SMEMBERS", "called", &[]), called);

    let delayed: Vec<Vec<u8>> = broken.tell("ZRANGE", "delayed", &[b"0", b"-1"]);
    let _: i64 = broken.tell("DEL", "delayed", &[]);
    let found = broken.bench.look().await;
    assert!(found.iter().any(|finding| finding.kind == FindingKind::Place), "{found:#?}");
    broken.bench.repair().await;
    assert_eq!(broken.bench.look().await, []);
    assert_eq!(broken.tell::<Vec<Vec<u8>>>("ZRANGE", "delayed", &[b"0", b"-1"]), delayed);
}

#[tokio::test]
async fn what_belongs_to_nothing_is_removed() {
    let two = [&NOBODY[..], &NOBODY].concat();
    let story = [&NOBODY[..], b"\x01"].concat();
    let later = [&NOBODY[..], b"\x64send"].concat();
    let of_partition = [b"part\x02\x01b\0", &NOBODY[..]].concat();
    let turn = [b"part\0", &[0; 29][..], b"part\x02\x01b"].concat();
    let (one, lane) = (&b"1"[..], place(b"send", &NOBODY));
    for (command, key, args) in [
        ("ZADD", "scheduled", vec![one, &later]),
        ("ZADD", "leases", vec![one, &NOBODY]),
        ("ZADD", "expiries", vec![one, &NOBODY]),
        ("ZADD", "dead", vec![one, &NOBODY]),
        ("ZADD", "lanes", vec![b"0", &lane]),
        ("ZADD", "delayed", vec![b"0", &of_partition]),
        ("ZADD", "turn_order", vec![b"0", &turn]),
        ("SADD", "called", vec![&two]),
        ("HSET", "awaited", vec![&NOBODY, &NOBODY]),
        ("HSET", "runs", vec![&NOBODY, b"run"]),
        ("HSET", "values", vec![&NOBODY, b"value"]),
        ("HSET", "stories", vec![&story, b"story"]),
        ("HSET", "partitions", vec![b"part\x02\x04gone", &[0; 22]]),
        ("HSET", "producers", vec![&NOBODY, &[0; 60]]),
        ("ZADD", "producer_line", vec![b"0", &lane]),
    ] {
        let broken = scene().await;
        let counts = broken.bench.store.counts().await.expect("answers");
        let _: i64 = broken.tell(command, key, &args);
        let found = broken.bench.look().await;
        assert!(found.iter().any(|finding| finding.kind == FindingKind::Orphan), "{key}: {found:#?}");
        let is_counted = |kind| matches!(kind, FindingKind::Orphan | FindingKind::Count);
        assert!(found.iter().all(|finding| is_counted(finding.kind)), "{key}: {found:#?}");
        broken.bench.repair().await;
        assert_eq!(broken.bench.look().await, [], "{key}");
        assert_eq!(broken.bench.store.counts().await.expect("answers"), counts, "{key}");
        assert_eq!(broken.bench.drain(&["send"]).await, 2, "{key}");
    }
}

#[tokio::test]
async fn a_job_that_stands_in_two_places_runs_once() {
    let broken = scene().await;
    let id = broken.scene.succeeded;
    let _: i64 = broken.tell("ZADD", "lanes", &[b"0", &place(b"send", id.as_bytes())]);
    let found = broken.bench.look().await;
    assert!(found.iter().any(|finding| finding.job == Some(id)), "{found:#?}");
    broken.bench.repair().await;
    assert_eq!(broken.bench.look().await, []);
    assert_eq!(broken.bench.drain(&["send"]).await, 2);
    assert_eq!((broken.bench.state(id).await, broken.bench.job(id).await.runs), (State::Succeeded, 1));
}

#[tokio::test]
async fn a_job_whose_runs_are_lost_stays_what_its_order_says() {
    let broken = scene().await;
    let id = broken.scene.dead;
    let _: i64 = broken.tell("HDEL", "runs", &[id.as_bytes()]);
    broken.is_repaired(FindingKind::Contradiction, "it is dead, and what its runs counted is gone").await;
    assert!(matches!(broken.bench.state(id).await, State::Dead(_)));
    assert_eq!(broken.bench.drain(&["send"]).await, 2);
}

#[tokio::test]
async fn a_partition_that_was_taken_out_of_the_turns_takes_its_turn_again() {
    for (command, key, args) in [
        ("DEL", "turn_order", vec![]),
        ("DEL", "openings", vec![]),
        ("HDEL", "partitions", vec![&b"part\x02\x01b"[..]]),
    ] {
        let broken = scene().await;
        let _: i64 = broken.tell(command, key, &args);
        let found = broken.bench.look().await;
        assert!(found.iter().any(|finding| finding.kind == FindingKind::Turn), "{key}: {found:#?}");
        broken.bench.repair().await;
        assert_eq!(broken.bench.look().await, [], "{key}");
        assert_eq!(partitions(&broken.bench.claim(broken.bench.living, &["part"], 9).await), ["b"]);
        broken.bench.pass(secs(400)).await;
        let claimed = broken.bench.claim(broken.bench.living, &["part"], 9).await;
        let mut started = partitions(&claimed);
        started.sort_unstable();
        assert_eq!(started, ["a", "b", "c", "d"], "{key}");
    }
}

#[tokio::test]
async fn the_permits_and_the_line_of_a_named_limit_are_set_right() {
    for (command, key, args, told) in [
        ("DEL", "used", vec![], "the counts of permits of a key that are held and reserved are"),
        ("DEL", "line", vec![], "it waits for a permit, and does not stand in the line"),
        ("DEL", "places", vec![], "a place in the line is kept, and nobody stands there"),
        ("ZADD", "reserved", vec![&b"1"[..], b"\0abcdefghijklmnop"], "a permit is reserved for a job"),
    ] {
        let broken = scene().await;
        broken.tell_limit(command, key, &args);
        broken.is_repaired(FindingKind::NamedLimit, told).await;
        broken.bench.pass(secs(20)).await;
        let is_called = !matches!(broken.bench.state(broken.scene.in_line).await, State::Scheduled(_));
        assert_eq!(is_called, key != "places", "{told}: where its place is lost, it comes by its own time");
    }
}

#[tokio::test]
async fn whoever_is_first_in_line_is_called_where_the_permit_before_it_was_lost() {
    let broken = scene().await;
    broken.tell_limit("DEL", "permits", &[]);
    broken.tell_limit("DEL", "used", &[]);
    broken.is_repaired(FindingKind::NamedLimit, "it is first in line and may have a permit").await;
    broken.bench.beat(broken.bench.living, &[]).await;
    assert_eq!(broken.bench.state(broken.scene.in_line).await, State::Ready);
}

#[tokio::test]
async fn a_sleeper_that_was_not_told_is_told() {
    let broken = scene().await;
    let bench = &broken.bench;
    bench.drain(&["send"]).await;
    let (_, wait) = asleep(bench, &["send"]).await;
    let waiters: Vec<Vec<u8>> = broken.tell("ZRANGE", "waiters", &[b"0", b"-1"]);
    let _: i64 = broken.tell("DEL", "waiters", &[]);
    bench.enqueue(job("send")).await;
    let _: i64 = broken.tell("DEL", "bells", &[]);
    let _: i64 = broken.tell("ZADD", "waiters", &[b"1", &waiters[0]]);
    broken.is_repaired(FindingKind::Bell, "a worker that waits for it is not told").await;
    assert_eq!(woken(wait).await, ["q"]);
}

#[tokio::test]
async fn producers_that_no_step_looks_for_are_told_of_room() {
    let broken = scene().await;
    let bench = &broken.bench;
    bench.set_queue(Change::MaxPending(Some(1))).await;
    let producer = ProducerId::new();
    let batch =
        Enqueue { queue: name("q"), jobs: jobs("send", 1), max_pending: None, producer: Some(producer) };
    bench.store.enqueue(batch.clone()).await.expect_err("there is no room");
    let queue = name("q");
    let mut room = bench.store.room(&queue, producer);
    assert!(bench.is_pending(&mut room).await);
    let _: i64 = broken.tell("HDEL", "meta", &[b"arrivals"]);
    bench.set_queue(Change::MaxPending(Some(1_000))).await;
    broken.is_repaired(FindingKind::Place, "producers wait for room, and no step looks for them").await;
    soon(room).await.expect("it is told");
    bench.store.enqueue(batch).await.expect("there is room");
}

#[tokio::test]
async fn who_waits_is_told_the_next_moment_again() {
    let broken = scene().await;
    let (_, wait) = asleep(&broken.bench, &["other"]).await;
    let _: i64 = broken.tell("HDEL", "meta", &[b"keeper"]);
    broken.is_repaired(FindingKind::Bell, "nobody keeps the time").await;
    drop(wait);
}

#[tokio::test]
async fn a_copy_of_the_limits_that_nothing_would_renew_is_brought_anew() {
    for (key, field, value) in [
        ("limits", &b"send"[..], &b"0|7|"[..]),
        ("limits", b"part\x02", b"1||"),
        ("meta", b"limits_version", b"999"),
    ] {
        let broken = scene().await;
        broken.bench.set_task("send", Change::MaxConcurrent(Some(100))).await;
        let _: i64 = broken.tell("HSET", key, &[field, value]);
        broken.is_repaired(FindingKind::Limits, "its copy of the limits").await;
        broken.bench.set_task("send", Change::Paused(true)).await;
        assert_eq!(broken.bench.drain(&["send"]).await, 0, "what is set arrives");
        broken.bench.set_task("send", Change::Paused(false)).await;
        assert_eq!(broken.bench.drain(&["send"]).await, 2);
    }
}

#[tokio::test]
async fn what_is_not_ours_is_named_and_left_as_it_is() {
    let broken = scene().await;
    let _: i64 = broken.tell("HSET", "bodies", &[&NOBODY, b""]);
    for _ in 0..2 {
        let found = broken.bench.repair().await;
        let is_it = found.len() == 1 && found[0].kind == FindingKind::Foreign && !found[0].is_repaired;
        assert!(is_it && found[0].job == Some(JobId::from_bytes(NOBODY)), "{found:#?}");
    }
    let broken = scene().await;
    let _: i64 = broken.tell("DEL", "values", &[]);
    let _: String = broken.tell("SET", "values", &[b"mine"]);
    let found = broken.bench.repair().await;
    assert_eq!((found.len(), found[0].kind), (1, FindingKind::Foreign));
    assert!(found[0].to_string().contains("the key values is a string, but it is a hash"), "{}", found[0]);
}

#[tokio::test]
async fn no_more_is_found_at_once_than_can_be_told() {
    let broken = scene().await;
    broken.bench.enqueue_many("q", jobs("send", 2_500)).await;
    let _: i64 = broken.tell("DEL", "lanes", &[]);
    assert_eq!(broken.bench.look().await.len(), 1_000);
    while !broken.bench.repair().await.is_empty() {}
    assert_eq!(broken.bench.look().await, []);
    assert_eq!(broken.bench.drain(&["send"]).await, 2_502);
}
