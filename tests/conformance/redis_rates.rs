//! The rates of the Redis store are the policy's: its own script, run by a server, is held to `policy/rate.rs` and
//! `policy/gate.rs` over random logs of starts.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use flexiq::internals::{Gate, Log, Pace, Rate, Timestamp, Verdict, longest};
use flexiq_tests::redis_server;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRunner};

use crate::harness::{START, millis};

/// The scripts that the store runs, and a part that asks them.
const SCRIPT: [&str; 4] = [
    include_str!("../../flexiq/src/store/redis/lua/lib/base.lua"),
    include_str!("../../flexiq/src/store/redis/lua/lib/queue.lua"),
    include_str!("../../flexiq/src/store/redis/lua/lib/gates.lua"),
    include_str!("redis_rates.lua"),
];

#[test]
fn what_a_script_admits_and_when_it_opens_is_the_policys_word() {
    let client = redis::Client::open(place().0).expect("the URL is one of Redis");
    let server = RefCell::new(client.get_connection().expect("the server answers"));
    let script = redis::Script::new(&SCRIPT.join("\n"));
    let cases = if std::env::var_os("FLEXIQ_SOAK").is_some() { 20_000 } else { 256 };
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let compared = TestRunner::new(config).run(&history(), |steps| {
        let played = play(&steps);
        let mut call = script.prepare_invoke();
        let prefix = place().1;
        for key in 0..24 {
            call.key(format!("{{{prefix}}}:{key}"));
        }
        call.arg(0).arg(prefix).arg("queue");
        for Asked { now, wanted, rates, .. } in &played {
            call.arg(now.as_millis()).arg(wanted).arg(written(rates));
        }
        let answer: Vec<i64> = call.invoke(&mut *server.borrow_mut()).expect("the script runs");
        let mut answer = answer.as_slice();
        for asked in &played {
            let said;
            (said, answer) = answer.split_at(asked.said.len());
            prop_assert_eq!(said, asked.said.as_slice(), "{:#?}", asked);
        }
        prop_assert!(answer.is_empty());
        Ok(())
    });
    compared.unwrap_or_else(|failure| panic!("{failure}"));
}

/// A server's address, and a prefix that no other test uses.
fn place() -> (String, String) {
    let url = redis_server::url();
    let (address, prefix) = url.split_once("?prefix=").expect("a store of a test has a prefix");
    (address.into(), prefix.into())
}

/// What happens between two questions.
#[derive(Clone, Debug)]
struct Step {
    pause: Pause,
    wanted: u32,
    /// Whether other rates hold from here on.
    rates: Option<Vec<Rate>>,
}

/// How time goes on. It may be stepped back.
#[derive(Clone, Debug)]
enum Pause {
    By(i64),
    /// To about a moment that was told before.
    Until(Index, i64),
}

/// A question, and the policy's answer: in the order of `redis_rates.lua`.
#[derive(Debug)]
struct Asked {
    now: Timestamp,
    wanted: u32,
    rates: Vec<Rate>,
    said: Vec<i64>,
}

fn history() -> impl Strategy<Value = Vec<Step>> {
    let pause = prop_oneof![
        1 => Just(Pause::By(0)),
        4 => (0..700_i64).prop_map(Pause::By),
        1 => (-3_000..60_000_i64).prop_map(Pause::By),
        4 => (any::<Index>(), -1..=1_i64).prop_map(|(of, off_ms)| Pause::Until(of, off_ms)),
    ];
    let wanted = prop_oneof![4 => 1..5_u32, 2 => 5..40_u32, 1 => 40..20_000_u32];
    let step = (pause, wanted, prop::option::weighted(0.1, rates()))
        .prop_map(|(pause, wanted, rates)| Step { pause, wanted, rates });
    vec(step, 1..80)
}

/// Up to three, each of its own length.
fn rates() -> impl Strategy<Value = Vec<Rate>> {
    let starts = prop_oneof![4 => 1..6_u32, 2 => 6..50_u32, 1 => select(vec![1_000, 3_000, 10_000])];
    let period = prop_oneof![
        2 => select(vec![1_000_u64, 60_000, 3_600_000]),
        1 => 1..2_000_u64,
    ];
    vec((starts, period, prop::bool::weighted(0.4)), 1..=3).prop_map(|rates| {
        let by_period: BTreeMap<u64, Rate> = rates
            .into_iter()
            .map(|(starts, period, spread)| (period, Rate { starts, period: millis(period), spread }))
            .collect();
        by_period.into_values().collect()
    })
}

/// The rates as the store writes them.
fn written(rates: &[Rate]) -> String {
    let one = |rate: &Rate| {
        format!("{}/{}{}", rate.starts, rate.period.as_millis(), if rate.spread { " spread" } else { "" })
    };
    rates.iter().map(one).collect::<Vec<_>>().join(",")
}

/// Asks the policy at each step, and starts what it admits.
fn play(steps: &[Step]) -> Vec<Asked> {
    let (mut starts, mut now, mut told) = (Starts::default(), START, vec![START]);
    let mut gate =
        Gate { rates: vec![Rate { starts: 3, period: millis(1_000), spread: false }], ..Gate::default() };
    let mut asked = Vec::new();
    for Step { pause, wanted, rates } in steps {
        let ms = match pause {
            Pause::By(ms) => now.as_millis() + ms,
            Pause::Until(of, off_ms) => of.get(&told).as_millis() + off_ms,
        };
        now = Timestamp::from_millis(ms);
        gate.rates = rates.clone().unwrap_or(gate.rates);
        let at = starts.moment(now);
        let mut said = Vec::new();
        for rate in &gate.rates {
            let pace = starts.pace_of(rate);
            let Ok(admission) = rate.admit(*wanted, at, pace, |n| Ok::<_, Infallible>(starts.nth(n)));
            told.push(admission.opens_at);
            said.extend([i64::from(admission.starts), admission.opens_at.as_millis()]);
        }
        let Ok(verdict) = gate.admit(*wanted, 0, at, &mut starts);
        said.push(verdict.starts().into());
        said.push(verdict.opens_at().map_or(0, Timestamp::as_millis));
        if let Verdict::Open(admitted) = verdict {
            starts.add(admitted, at, &gate.rates);
        }
        asked.push(Asked { now, wanted: *wanted, rates: gate.rates.clone(), said });
    }
    asked
}

/// A log of starts in memory.
#[derive(Clone, Debug, Default)]
struct Starts {
    /// The newest last.
    log: Vec<Timestamp>,
    paces: BTreeMap<(u32, Duration), Pace>,
}

impl Starts {
    /// The moment of a start now: never before the last.
    fn moment(&self, now: Timestamp) -> Timestamp {
        self.log.last().map_or(now, |&newest| newest.max(now))
    }

    /// The moment of the nth newest.
    fn nth(&self, n: u32) -> Option<Timestamp> {
        self.log.len().checked_sub(n as usize).map(|index| self.log[index])
    }

    /// Where a rate stands. One that was not in force at the last start is spaced from it all the same.
    fn pace_of(&self, rate: &Rate) -> Pace {
        let kept = self.paces.get(&(rate.starts, rate.period)).copied().unwrap_or_default();
        let since_last = self.log.last().map(|&newest| rate.after(1, newest, Pace::default()).0);
        Pace(kept.0.max(since_last.unwrap_or_default()))
    }

    /// Adds starts, and forgets those that had left every window.
    fn add(&mut self, starts: u32, at: Timestamp, rates: &[Rate]) {
        for rate in rates.iter().filter(|rate| rate.spread) {
            self.paces.insert((rate.starts, rate.period), rate.after(starts, at, self.pace_of(rate)));
        }
        let is_over = |start: &&Timestamp| **start <= at - longest(rates);
        let over = self.log.iter().take_while(is_over).count();
        self.log.drain(..over);
        self.log.extend((0..starts).map(|_| at));
    }
}

impl Log for Starts {
    type Error = Infallible;

    fn nth_newest(&mut self, n: u32) -> Result<Option<Timestamp>, Infallible> {
        Ok(self.nth(n))
    }

    fn pace(&mut self, rate: &Rate) -> Result<Pace, Infallible> {
        Ok(self.pace_of(rate))
    }
}
