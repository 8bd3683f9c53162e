//! The project's figures: what it reaches, against yardsticks taken in the same run on the same machine.
//!
//! ```sh
//! cargo bench -p flexiq --bench figures                # a table
//! cargo bench -p flexiq --bench figures -- --json      # for programs
//! cargo bench -p flexiq --bench figures -- drained     # the figures whose name has this word
//! ```
//!
//! `FLEXIQ_SOAK=1` measures more often and behind longer backlogs. Each value is a median of several runs, in which the
//! measured and its yardstick take turns, so that both meet the same machine.

mod bare;
mod cap;
mod claim;
mod drain;
#[allow(dead_code, reason = "the bench runs a part of the variants")]
#[path = "../../../examples/starvation/experiment.rs"]
mod experiment;
mod figure;
mod latency;
mod starvation;

use figure::Figure;

/// One figure, or a few that are measured together.
struct Entry {
    name: &'static str,
    measure: fn() -> flexiq::Result<Vec<Figure>>,
}

const ENTRIES: [Entry; 7] = [
    Entry { name: "drained, FULL", measure: drain::full },
    Entry { name: "drained, NORMAL", measure: drain::normal },
    Entry { name: "free job behind capped ones", measure: latency::behind_a_backlog },
    Entry { name: "claim of 100 with 100 tasks waiting", measure: claim::of_many_tasks },
    Entry { name: "slots of a cap in use", measure: cap::in_use },
    Entry { name: "enqueue to start", measure: latency::of_an_idle_worker },
    Entry { name: "experiment", measure: starvation::emails },
];

fn main() {
    // Cargo adds `--bench`.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let as_json = words.iter().any(|word| word == "--json");
    let filters: Vec<&String> = words.iter().filter(|word| !word.starts_with("--")).collect();
    let mut figures = Vec::new();
    for Entry { name, measure } in ENTRIES {
        if !filters.is_empty() && !filters.iter().any(|filter| name.contains(filter.as_str())) {
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
