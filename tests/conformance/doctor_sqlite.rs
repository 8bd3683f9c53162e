//! A file that was broken by hand: what is wrong is named, repaired, and nothing is lost.

use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;

use flexiq::internals::sqlite::{Location, SqliteOptions, SqliteStore};
use flexiq::internals::{Clock, Repair, Store};
use flexiq::{FindingKind, State};
use rusqlite::Connection;

use crate::doctor::Scene;
use crate::harness::*;

/// A store in a file, and a connection of somebody else's on it.
struct Broken {
    bench: Bench,
    scene: Scene,
    raw: Connection,
    path: PathBuf,
    _folder: Folder,
}

async fn scene() -> Broken {
    let folder = Folder::new();
    let path = folder.file("jobs.db");
    let (clock, hands) = Clock::manual(START);
    let mut options = SqliteOptions::new(Location::File(path.clone()));
    options.clock = clock;
    let store = SqliteStore::open(options).await.expect("the store opens");
    let bench = Bench::of(store, hands, millis(0), None).await;
    let scene = bench.scene().await;
    let raw = Connection::open(&path).expect("the file is there");
    Broken { bench, scene, raw, path, _folder: folder }
}

impl Broken {
    fn tell(&self, sql: &str) {
        let changed = self.raw.execute(sql, []).expect("it is SQL");
        assert!(changed > 0, "it breaks something: {sql}");
    }

    /// That nothing was found but this, which is repaired, and nothing is found afterwards.
    async fn is_repaired(&self, kind: FindingKind, told: &str) {
        let found = self.bench.look().await;
        assert!(!found.is_empty(), "it is found: {told}");
        assert!(found.iter().all(|finding| finding.kind == kind && !finding.is_repaired), "{found:#?}");
        assert!(found.iter().any(|finding| finding.to_string().contains(told)), "{found:#?}");
        let repaired = self.bench.repair().await;
        assert!(repaired.iter().all(|finding| finding.is_repaired), "{repaired:#?}");
        assert_eq!(self.bench.look().await, [], "nothing is left of {told:?}");
    }
}

#[tokio::test]
async fn counters_are_counted_anew() {
    for (sql, told) in [
        (
            "UPDATE flexiq_lanes SET ready = ready + 5 WHERE task = 'send'",
            "the count of jobs that are ready is 7, but it should be 2",
        ),
        (
            "UPDATE flexiq_lanes SET running = 0 WHERE task = 'send'",
            "the count of jobs that are running is 0, but it should be 2",
        ),
        (
            "UPDATE flexiq_lanes SET dead = 3 WHERE partition = 'b'",
            "the count of jobs of partition \"b\" that are dead is 3",
        ),
        ("UPDATE flexiq_partitioned SET ready = 0", "the count of jobs that are ready is 0"),
        (
            "UPDATE flexiq_partitioned SET running = 9",
            "the count of jobs that are running is 9, but it should be 1",
        ),
        ("UPDATE flexiq_partitioned SET startable = 9", "the count of jobs that are startable is 9"),
        (
            "UPDATE flexiq_partitioned SET dead = 9",
            "the count of jobs that are dead is 9, but it should be 0",
        ),
        ("UPDATE flexiq_queues SET pending = 1", "the count of jobs that are pending is 1"),
        ("UPDATE flexiq_queues SET succeeded = -1", "the count of jobs that are succeeded is -1"),
    ] {
        let broken = scene().await;
        let counts = broken.bench.store.counts().await.expect("answers");
        broken.tell(sql);
        broken.is_repaired(FindingKind::Count, told).await;
        assert_eq!(broken.bench.store.counts().await.expect("answers"), counts);
        assert_eq!(broken.bench.drain(&["send"]).await, 2);
    }
}

#[tokio::test]
async fn a_running_job_without_a_lease_is_found_by_nobody_else_and_gets_one_again() {
    let broken = scene().await;
    let (bench, lease) = (&broken.bench, broken.scene.running);
    let lose = || broken.tell("UPDATE flexiq_jobs SET until = NULL WHERE state = 2 AND cancel_requested = 0");
    lose();
    bench.beat(bench.living, &[lease, broken.scene.holder]).await;
    assert_eq!(bench.look().await.len(), 1, "whoever runs one brings its lease back");
    lose();
    bench.pass(secs(600)).await;
    assert_eq!(bench.state(lease.job).await, State::Running, "nobody else does");
    broken.is_repaired(FindingKind::NoLease, "it is running without a lease").await;
    assert_eq!(bench.state(lease.job).await, State::Running, "its worker may live");
    bench.pass(LEASE + BEAT).await;
    assert_eq!((bench.state(lease.job).await, bench.job(lease.job).await.losses), (State::Ready, 1));
}

#[tokio::test]
async fn rows_that_contradict_themselves_are_set_right() {
    for (set, told) in [
        ("until = 5 WHERE state = 1", "it is pending, and has a lease or an end"),
        ("ended_at = 5 WHERE state = 0", "it is pending, and has a lease or an end"),
        ("cancel_requested = 1 WHERE state = 1", "it is pending, and was told to stop"),
        ("started_at = NULL WHERE state = 2", "it is running, and has not started or has ended"),
        ("until = NULL WHERE state = 3", "it has ended, and nothing says when"),
        ("ended_at = NULL WHERE state = 6", "it has ended, and nothing says when"),
        ("reason = 9 WHERE state = 4", "the reason of its state is none that there is"),
    ] {
        let broken = scene().await;
        broken.tell(&format!("UPDATE flexiq_jobs SET {set}"));
        broken.is_repaired(FindingKind::Contradiction, told).await;
        let (bench, scene) = (&broken.bench, &broken.scene);
        assert!(bench.drain(&["send"]).await >= 2);
        assert_eq!(bench.state(scene.ready).await, State::Succeeded);
        assert!(matches!(bench.state(scene.dead).await, State::Dead(_)));
    }
}

#[tokio::test]
async fn what_belongs_to_nothing_is_removed() {
    for (sql, told) in [
        (
            "INSERT INTO flexiq_bodies VALUES (zeroblob(16), 0, x'00')",
            "arguments are kept of a job that is not there",
        ),
        (
            "INSERT INTO flexiq_bodies VALUES (zeroblob(16), 1, x'00')",
            "a value is kept of a job that is not there",
        ),
        (
            "INSERT INTO flexiq_lanes (lane, queue, task, partition) VALUES (999, 1, 'part', 'gone')",
            "partition \"gone\" is kept, of which no job is there",
        ),
    ] {
        let broken = scene().await;
        broken.tell(sql);
        broken.is_repaired(FindingKind::Orphan, told).await;
    }
}

#[tokio::test]
async fn a_partition_that_was_taken_out_of_the_turns_takes_its_turn_again() {
    for sql in [
        "UPDATE flexiq_lanes SET startable = 0 WHERE partition = 'b'",
        "UPDATE flexiq_lanes SET opens_at = NULL WHERE partition = 'c'",
        "UPDATE flexiq_lanes SET rank = 50 WHERE partition = 'b'",
        "UPDATE flexiq_lanes SET id = zeroblob(16) WHERE partition = 'b'",
        "UPDATE flexiq_lanes SET turn = NULL WHERE partition = 'a'",
        "UPDATE flexiq_lanes SET opens_at = 5 WHERE partition = 'e'",
        "DELETE FROM flexiq_partitioned",
    ] {
        let broken = scene().await;
        broken.tell(sql);
        let found = broken.bench.look().await;
        let is_of_turns = |kind| {
            matches!(kind, FindingKind::Turn) || sql.contains("startable") && kind == FindingKind::Count
        };
        assert!(
            !found.is_empty() && found.iter().all(|finding| is_of_turns(finding.kind)),
            "{sql}: {found:#?}"
        );
        broken.bench.repair().await;
        assert_eq!(broken.bench.look().await, [], "{sql}");
        assert_eq!(partitions(&broken.bench.claim(broken.bench.living, &["part"], 9).await), ["b"]);
        broken.bench.pass(secs(400)).await;
        let claimed = broken.bench.claim(broken.bench.living, &["part"], 9).await;
        let mut started = partitions(&claimed);
        started.sort_unstable();
        assert_eq!(started, ["a", "b", "c", "d"], "{sql}");
    }
}

#[tokio::test]
async fn whoever_is_first_in_line_is_called_where_the_permit_before_it_was_lost() {
    let broken = scene().await;
    broken.tell("DELETE FROM flexiq_permits");
    broken.is_repaired(FindingKind::NamedLimit, "whoever is first in the line of \"api\"").await;
    broken.bench.beat(broken.bench.living, &[]).await;
    assert_eq!(broken.bench.state(broken.scene.in_line).await, State::Ready);
}

#[tokio::test]
async fn what_cannot_be_repaired_is_named_and_left_as_it_is() {
    for (sql, kind, told) in [
        (
            "UPDATE flexiq_jobs SET payload = NULL WHERE state = 1",
            FindingKind::Lost,
            "its arguments are gone",
        ),
        ("UPDATE flexiq_jobs SET value_kind = NULL WHERE state = 3", FindingKind::Lost, "its value is gone"),
        ("DELETE FROM flexiq_bodies WHERE part = 1", FindingKind::Lost, "its value is gone"),
        (
            "UPDATE flexiq_jobs SET state = 9 WHERE state = 4",
            FindingKind::Foreign,
            "its state is none that there is",
        ),
        (
            "UPDATE flexiq_jobs SET lane = 999 WHERE state = 4",
            FindingKind::Lost,
            "its task and queue are gone",
        ),
    ] {
        let broken = scene().await;
        let jobs =
            || broken.raw.query_row("SELECT count(*) FROM flexiq_jobs", [], |row| row.get::<_, i64>(0));
        let before = jobs().expect("counted");
        broken.tell(sql);
        for _ in 0..2 {
            let found = broken.bench.repair().await;
            let this = found.iter().find(|finding| finding.kind == kind).expect("it is found");
            assert!(this.to_string().contains(told) && this.to_string().ends_with("Not repaired."), "{this}");
        }
        assert_eq!(jobs().expect("counted"), before, "no job is deleted");
    }
}

#[tokio::test]
async fn a_damaged_file_is_named_and_nothing_is_written_to_it() {
    let Broken { bench, raw, path, _folder, .. } = scene().await;
    raw.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("checkpointed");
    let root: u32 = raw
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'flexiq_jobs_scheduled'", [], |row| {
            row.get(0)
        })
        .expect("the index is there");
    drop((bench, raw));
    let mut file = std::fs::OpenOptions::new().write(true).open(&path).expect("the file is there");
    file.seek(SeekFrom::Start(u64::from(root - 1) * 4_096)).expect("the page is there");
    file.write_all(&[0x0a, 0, 0, 0, 9]).expect("written");
    drop(file);
    let store = SqliteStore::open(SqliteOptions::new(Location::File(path))).await.expect("the store opens");
    let found = store.check(Repair::All).await.expect("it is checked");
    assert!(!found.is_empty(), "it is found");
    assert!(
        found.iter().all(|finding| finding.kind == FindingKind::File && !finding.is_repaired),
        "{found:#?}"
    );
}

#[tokio::test]
async fn no_more_is_found_at_once_than_can_be_told() {
    let broken = scene().await;
    broken.bench.enqueue_many("q", jobs("send", 1_500)).await;
    broken.tell("UPDATE flexiq_jobs SET cancel_requested = 1 WHERE state = 1");
    assert_eq!(broken.bench.look().await.len(), 1_000);
    let mut repaired = 0;
    while let found @ 1.. = broken.bench.repair().await.len() {
        repaired += found;
    }
    assert!(repaired > 1_500, "{repaired}");
    assert_eq!(broken.bench.look().await, []);
}
