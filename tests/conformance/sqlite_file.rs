//! What only a file can do wrong: wrong files, other processes, locks, the application's own tables.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

use flexiq::internals::Due;
use flexiq::internals::sqlite::{Location, SqliteOptions, SqliteStore};
use flexiq::internals::{
    Absent, Enqueue, Finish, Finished, Hello, JobKey, NewJob, Store, Turn, Wait, WorkerId,
};
use flexiq::{Effect, Error, JobId};
use rusqlite::Connection;

use crate::harness::*;

async fn open(path: &Path) -> flexiq::Result<Arc<SqliteStore>> {
    SqliteStore::open(SqliteOptions::new(Location::File(path.into()))).await
}

async fn open_impatient(path: &Path, timeout: Duration) -> Arc<SqliteStore> {
    let mut options = SqliteOptions::new(Location::File(path.into()));
    options.timeout = timeout;
    SqliteStore::open(options).await.expect("the store opens")
}

async fn refusal(path: &Path) -> String {
    let error = open(path).await.map(drop).expect_err("the file cannot be used");
    assert!(matches!(error, Error::StoreRefused { .. }), "{error:?}");
    let message = error.to_string();
    assert!(message.contains(&path.display().to_string()), "it names the file: {message}");
    message
}

fn batch(job: NewJob) -> Enqueue {
    Enqueue { queue: name("q"), jobs: vec![job], max_pending: None, producer: None }
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_as_it_was() {
    let folder = Folder::new();
    for (file, content) in [("short.txt", "hello".to_owned()), ("long.txt", "hello, world\n".repeat(1_000))] {
        let path = folder.file(file);
        std::fs::write(&path, &content).expect("the folder can be written");
        assert!(refusal(&path).await.contains("not an SQLite database"));
        assert_eq!(std::fs::read_to_string(&path).expect("still text"), content);
        assert!(!folder.file(&format!("{file}-wal")).exists());
    }
}

#[tokio::test]
async fn a_folder_is_refused() {
    let folder = Folder::new();
    assert!(refusal(&folder.0).await.contains("it is a folder"));
}

#[tokio::test]
async fn a_missing_folder_is_named_and_not_created() {
    let folder = Folder::new();
    let message = refusal(&folder.file("missing").join("jobs.db")).await;
    assert!(message.contains("missing does not exist: create it first"), "{message}");
    assert!(!folder.file("missing").exists());
}

#[tokio::test]
async fn a_file_in_the_place_of_the_folder_is_named() {
    let folder = Folder::new();
    std::fs::write(folder.file("plain"), "").expect("the folder can be written");
    assert!(refusal(&folder.file("plain").join("jobs.db")).await.contains("is not a folder"));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_folder_that_cannot_be_written_is_refused() {
    // Not even root may create files here.
    assert!(refusal(Path::new("/proc/flexiq.db")).await.contains("may be written"));
}

#[tokio::test]
async fn an_empty_file_becomes_a_store() {
    let folder = Folder::new();
    std::fs::write(folder.file("jobs.db"), "").expect("the folder can be written");
    open(&folder.file("jobs.db")).await.expect("the store opens");
}

#[tokio::test]
async fn a_store_that_must_exist_is_refused_where_there_is_none_and_nothing_is_written() {
    let folder = Folder::new();
    let file = folder.file("jobs.db");
    let open = async |location| {
        let mut options = SqliteOptions::new(location);
        options.absent = Absent::Refuse;
        SqliteStore::open(options).await
    };
    let refusal = async |location| open(location).await.expect_err("there is no store").to_string();
    assert!(refusal(Location::File(file.clone())).await.contains("there is no such file"));
    assert!(refusal(Location::Memory).await.contains("for the handle alone"));
    assert!(!file.exists());

    let other = Connection::open(&file).expect("the file can be written");
    other.execute_batch("CREATE TABLE theirs (x)").expect("the file can be written");
    drop(other);
    let before = std::fs::read(&file).expect("it is there");
    assert!(refusal(Location::File(file.clone())).await.contains("without flexiq's tables"));
    assert_eq!(std::fs::read(&file).expect("it is there"), before);

    drop(SqliteStore::open(SqliteOptions::new(Location::File(file.clone()))).await.expect("it is created"));
    open(Location::File(file)).await.expect("it is there");
}

#[tokio::test]
async fn what_was_stored_is_there_after_the_store_was_closed() {
    let folder = Folder::new();
    let path = folder.file("jobs.db");
    let stored = job("send");
    let store = open(&path).await.expect("the store opens");
    store.enqueue(batch(stored.clone())).await.expect("stored");
    drop(store);
    let store = open(&path).await.expect("the store opens again");
    // Its bell is rung, too.
    let wait = Wait { worker: WorkerId::new(), queues: vec![(name("q"), Arc::from([name("send")]))] };
    soon(store.wait(wait)).await.expect("woken");
    assert!(store.job(stored.id).await.expect("answers").is_some());
}

#[tokio::test]
async fn the_applications_own_tables_and_numbers_are_left_alone() {
    let folder = Folder::new();
    let path = folder.file("app.db");
    let own = Connection::open(&path).expect("opens");
    own.execute_batch("CREATE TABLE users (name TEXT); INSERT INTO users VALUES ('ada')").expect("writes");
    own.pragma_update(None, "user_version", 7).expect("writes");
    own.pragma_update(None, "application_id", 42).expect("writes");

    let store = open(&path).await.expect("the store opens");
    store.enqueue(batch(job("send"))).await.expect("stored");
    let read = |sql: &str| own.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("reads");
    assert_eq!(read("PRAGMA user_version"), 7);
    assert_eq!(read("PRAGMA application_id"), 42);
    assert_eq!(read("SELECT count(*) FROM users"), 1);
    let foreign = "SELECT count(*) FROM sqlite_schema
                   WHERE tbl_name NOT LIKE 'flexiq\\_%' ESCAPE '\\' AND name <> 'users'";
    assert_eq!(read(foreign), 0);
    own.execute("INSERT INTO users VALUES ('bob')", []).expect("the application still writes");
}

#[tokio::test]
async fn a_schema_that_only_a_newer_flexiq_understands_is_refused() {
    let folder = Folder::new();
    let path = folder.file("jobs.db");
    drop(open(&path).await.expect("the store opens"));
    let other = Connection::open(&path).expect("opens");
    let set = |key: &str, value: i64| {
        other
            .execute("UPDATE flexiq_meta SET value = ?2 WHERE key = ?1", rusqlite::params![key, value])
            .expect("writes")
    };
    set("schema", 9);
    open(&path).await.expect("a newer schema that this version may use");
    set("oldest_schema", 8);
    let error = open(&path).await.map(drop).expect_err("a newer schema that it may not use");
    assert!(matches!(error, Error::UnsupportedSchema { found: 9, known: 1, .. }), "{error:?}");
}

#[tokio::test]
async fn a_call_waits_for_a_lock_that_is_given_up_in_time() {
    let folder = Folder::new();
    let path = folder.file("jobs.db");
    let store = open(&path).await.expect("the store opens");
    let holder = Connection::open(&path).expect("opens");
    holder.execute_batch("BEGIN EXCLUSIVE").expect("locks");
    let stored = job("send");
    let mut call = store.enqueue(batch(stored.clone()));
    tokio::select! {
        _ = &mut call => panic!("stored in spite of the lock"),
        () = tokio::time::sleep(millis(300)) => {}
    }
    holder.execute_batch("COMMIT").expect("unlocks");
    soon(call).await.expect("stored");
    assert!(store.job(stored.id).await.expect("answers").is_some());
}

#[tokio::test]
async fn a_call_that_gives_up_on_a_lock_has_certainly_stored_nothing() {
    let folder = Folder::new();
    let path = folder.file("jobs.db");
    let store = open_impatient(&path, millis(200)).await;
    let holder = Connection::open(&path).expect("opens");
    holder.execute_batch("BEGIN EXCLUSIVE").expect("locks");
    let stored = job("send");
    let error = store.enqueue(batch(stored.clone())).await.expect_err("locked");
    assert!(matches!(error, Error::StoreUnavailable { effect: Effect::None, .. }), "{error:?}");
    assert!(error.to_string().contains("nothing was stored"), "{error}");
    // Reading does not wait for it.
    assert_eq!(store.job(stored.id).await.expect("answers"), None);

    holder.execute_batch("COMMIT").expect("unlocks");
    store.enqueue(batch(job("send"))).await.expect("the writer has gone on by itself");
    assert_eq!(store.job(stored.id).await.expect("answers"), None, "not even later");
}

#[tokio::test]
async fn a_call_that_is_dropped_before_it_began_stores_nothing() {
    let folder = Folder::new();
    let path = folder.file("jobs.db");
    let store = open(&path).await.expect("the store opens");
    let holder = Connection::open(&path).expect("opens");
    holder.execute_batch("BEGIN EXCLUSIVE").expect("locks");
    let stored = job("send");
    drop(store.enqueue(batch(stored.clone())));
    holder.execute_batch("COMMIT").expect("unlocks");
    store.enqueue(batch(job("send"))).await.expect("stored");
    assert_eq!(store.job(stored.id).await.expect("answers"), None);
}

#[tokio::test]
async fn two_handles_of_one_file_share_their_bells() {
    let folder = Folder::new();
    let path = folder.file("jobs.db");
    let (first, second) = (open(&path).await.expect("opens"), open(&path).await.expect("opens"));
    let wait = Wait { worker: WorkerId::new(), queues: vec![(name("q"), Arc::from([name("send")]))] };
    let waiting = tokio::spawn(async move { first.wait(wait).await });
    tokio::task::yield_now().await;
    second.enqueue(batch(job("send"))).await.expect("stored");
    let wake = tokio::time::timeout(secs(5), waiting).await.expect("woken").expect("no panic");
    assert_eq!(wake.expect("answered").queues, [name("q")]);
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_was_replaced_takes_no_more_jobs() {
    let folder = Folder::new();
    let path = folder.file("jobs.db");
    let store = open(&path).await.expect("the store opens");
    std::fs::rename(&path, folder.file("away.db")).expect("renames");
    std::fs::write(&path, "").expect("writes");
    let error = store.enqueue(batch(job("send"))).await.expect_err("nobody would find the job");
    assert!(error.to_string().contains("deleted, moved or replaced"), "{error}");
    std::fs::rename(folder.file("away.db"), &path).expect("renames");
    store.enqueue(batch(job("send"))).await.expect("the file is back");
}

// Other processes: this very program, started again to run `child` below in the role that is asked for.

fn start(role: &str, path: &Path, argument: &str) -> Child {
    Command::new(std::env::current_exe().expect("this program has a path"))
        .args(["--exact", "sqlite_file::child", "--ignored", "--quiet"])
        .env("FLEXIQ_TEST_ROLE", role)
        .env("FLEXIQ_TEST_FILE", path)
        .env("FLEXIQ_TEST_ARGUMENT", argument)
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("this program can be started again")
}

#[tokio::test]
#[ignore = "the other process of the tests below"]
async fn child() {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let store = open(&PathBuf::from(variable("FLEXIQ_TEST_FILE"))).await.expect("the store opens");
    let argument = variable("FLEXIQ_TEST_ARGUMENT");
    match variable("FLEXIQ_TEST_ROLE").as_str() {
        "enqueue" => {
            for _ in 0..argument.parse().expect("a number") {
                store.enqueue(batch(job("send"))).await.expect("stored");
            }
        }
        "enqueue later" => {
            let later = NewJob { due: Due::In(millis(300)), ..job("send") };
            store.enqueue(batch(later)).await.expect("stored");
        }
        "cancel" => {
            store.cancel(argument.parse().expect("an id")).await.expect("cancelled");
        }
        role => panic!("{role:?} is no role"),
    }
}

fn waits(store: &Arc<SqliteStore>) -> impl Future<Output = Duration> + use<> {
    let store = store.clone();
    async move {
        let start = Instant::now();
        let wait = Wait { worker: WorkerId::new(), queues: vec![(name("q"), Arc::from([name("send")]))] };
        soon(store.wait(wait)).await.expect("woken");
        start.elapsed()
    }
}

#[tokio::test]
async fn what_another_process_enqueues_wakes_a_worker_here() {
    let folder = Folder::new();
    let path = folder.file("jobs.db");
    let store = open(&path).await.expect("the store opens");
    let waiting = tokio::spawn(waits(&store));
    let mut other = start("enqueue", &path, "1");
    waiting.await.expect("woken");
    assert!(other.wait().expect("ends").success());
}

#[tokio::test]
async fn what_another_process_enqueues_for_later_wakes_a_worker_here_in_time() {
    let folder = Folder::new();
    let path = folder.file("jobs.db");
    let store = open(&path).await.expect("the store opens");
    let waiting = tokio::spawn(waits(&store));
    let mut other = start("enqueue later", &path, "");
    let waited = waiting.await.expect("woken");
    assert!(waited >= millis(300), "not before its time: {waited:?}");
    assert!(other.wait().expect("ends").success());
}

#[tokio::test]
async fn what_another_process_cancels_is_told_here() {
    let folder = Folder::new();
    let path = folder.file("jobs.db");
    let store = open(&path).await.expect("the store opens");
    let worker = WorkerId::new();
    let hello = Hello { worker, label: "host:1".into(), lease: LEASE, queues: vec![], tasks: vec![] };
    store.register(hello).await.expect("registers");
    let (pending, running) = (job("idle"), job("send"));
    for job in [&pending, &running] {
        store.enqueue(batch(job.clone())).await.expect("stored");
    }
    let turn =
        Turn { worker, queue: name("q"), number: 1, finishes: vec![], claim: Some(claim(&["send"], 1)) };
    let lease = store.turn(turn.into()).await.expect("answers").claimed[0].lease;

    let (called, ended) = (store.clone(), store.clone());
    let key = JobKey { queue: name("q"), id: pending.id };
    let called = tokio::spawn(async move { soon(called.called(worker)).await });
    let ended = tokio::spawn(async move { soon(ended.ended(key)).await });
    // Both have looked, and wait.
    for _ in 0..3 {
        store.queues().await.expect("answers");
    }
    for id in [pending.id, running.id] {
        assert!(start("cancel", &path, &id.to_string()).wait().expect("ends").success());
    }
    called.await.expect("no panic").expect("the worker is called");
    assert!(ended.await.expect("no panic").expect("answers").is_some());
    let finishes = vec![Finish::new(lease, flexiq::internals::Transition::Cancel)];
    let turn = Turn { worker, queue: name("q"), number: 2, finishes, claim: None };
    assert_eq!(store.turn(turn.into()).await.expect("answers").finished, [Finished::Done]);
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_create_one_file_at_once_and_write_to_it_lose_nothing() {
    let folder = Folder::new();
    let path = folder.file("jobs.db");
    let others: Vec<Child> = (0..6).map(|_| start("enqueue", &path, "50")).collect();
    for mut other in others {
        assert!(other.wait().expect("ends").success());
    }
    let store = open(&path).await.expect("the store opens");
    let counts = store.counts().await.expect("answers");
    assert_eq!(counts.tasks[0].ready, 300);
    assert_eq!(store.job(JobId::new()).await.expect("answers"), None);
}
