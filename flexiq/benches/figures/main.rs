//! The project's figures: what it reaches, against yardsticks taken in the same run on the same machine.
//!
//! ```sh
//! cargo bench -p flexiq --bench figures                # a table
//! cargo bench -p flexiq --bench figures -- --json      # for programs
//! cargo bench -p flexiq --bench figures -- drained     # the figures whose name has all of these words
//! ```
//!
//! `FLEXIQ_SOAK=1` measures more often and behind longer backlogs. Each value is a median of several runs, in which the
//! measured and its yardstick take turns, so that both meet the same machine. What is on Redis runs on servers that the
//! bench starts, each on a free port and in a folder of its own, and stops.

mod bare;
mod cap;
mod claim;
mod drain;
#[allow(dead_code, reason = "the bench runs a part of the variants")]
#[path = "../../../examples/starvation/experiment.rs"]
mod experiment;
mod figure;
mod idle;
mod latency;
mod look;
mod partitions;
mod produce;
mod raw;
#[allow(dead_code, reason = "the bench does not break its servers")]
#[path = "../../../tests/redis_server.rs"]
mod redis_server;
mod starvation;
mod usage;

use figure::Figure;

/// One figure, or a few that are measured together.
struct Entry {
    name: &'static str,
    measure: fn() -> flexiq::Result<Vec<Figure>>,
}

const fn entry(name: &'static str, measure: fn() -> flexiq::Result<Vec<Figure>>) -> Entry {
    Entry { name, measure }
}

/// Each that is named after Redis starts a server of its own.
const ENTRIES: [Entry; 21] = [
    entry("drained, Redis", drain::redis),
    entry("enqueue, 64 producers, Redis", produce::from_many_tasks),
    entry("enqueue in bulk, Redis", produce::in_bulk),
    entry("enqueue one at a time, Redis", produce::one_at_a_time),
    entry("enqueue to start, Redis", latency::of_an_idle_worker_on_redis),
    entry("free job behind capped ones, Redis", latency::behind_a_backlog_on_redis),
    entry("claim of 100 with 100 tasks waiting, Redis", claim::of_many_tasks_on_redis),
    entry("claim of 100 with 100,000 partitions waiting, Redis", partitions::on_redis),
    entry("slots of a cap in use, Redis", cap::in_use_on_redis),
    entry("experiment, Redis", starvation::emails_on_redis),
    entry("idle worker, Redis", idle::worker),
    entry("memory of a waiting job, Redis", produce::memory),
    entry("looking at a million waiting jobs, Redis", look::on_redis),
    entry("drained, SQLite", drain::sqlite),
    entry("free job behind capped ones, SQLite", latency::behind_a_backlog),
    entry("claim of 100 with 100 tasks waiting, SQLite", claim::of_many_tasks),
    entry("claim of 100 with 100,000 partitions waiting, SQLite", partitions::on_sqlite),
    entry("slots of a cap in use, SQLite", cap::in_use),
    entry("enqueue to start, SQLite", latency::of_an_idle_worker),
    entry("experiment, SQLite", starvation::emails),
    entry("looking at a million waiting jobs, SQLite", look::on_sqlite),
];

fn main() {
    // Cargo adds `--bench`.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let as_json = words.iter().any(|word| word == "--json");
    let filters: Vec<String> =
        words.iter().filter(|word| !word.starts_with("--")).map(|word| word.to_lowercase()).collect();
    let has_redis = has_redis();
    let mut figures = Vec::new();
    for Entry { name, measure } in ENTRIES {
        let lower = name.to_lowercase();
        if !filters.iter().all(|filter| lower.contains(filter.as_str())) {
            continue;
        }
        if name.ends_with("Redis") && !has_redis {
            eprintln!("{name}: left out, because no redis-server is installed");
            continue;
        }
        if !as_json {
            eprintln!("{name} …");
        }
        figures.extend(measure().unwrap_or_else(|error| panic!("{name}: {error}")));
    }
    if as_json {
        println!("{}", figure::json(&figures));
    } else {
        print!("{}", figure::table(&figures));
    }
}

/// Whether there is a `redis-server` to be started.
fn has_redis() -> bool {
    let version = std::process::Command::new("redis-server").arg("--version").output();
    version.is_ok_and(|version| version.status.success())
}

/// What fills a payload `{"padding":"…"}` up to 100 bytes.
fn padding() -> String {
    "x".repeat(100 - r#"{"padding":""}"#.len())
}

/// So many times, or more often in a soak.
fn runs(usual: usize) -> usize {
    if is_soak() { usual * 3 } else { usual }
}

fn is_soak() -> bool {
    std::env::var("FLEXIQ_SOAK").is_ok_and(|soak| soak == "1")
}

/// What runs tasks and measurements: as many threads as the machine has.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("the system gives threads to the runtime")
}
