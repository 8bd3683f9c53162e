//! Named limits with rates: permits per period, whoever asks.

use flexiq::internals::{Ask, RESERVED};

use crate::harness::*;
use crate::permits::*;

for_every_store! {
    async fn no_window_of_the_period_ever_sees_more_permits_than_the_rate(bench: Bench) {
        let mut granted = Vec::new();
        for round in 0..60_u64 {
            for run in bench.runs(1 + (round % 3) as usize).await {
                let ask = at_rate("4/m", run);
                if bench.is_granted(&ask).await {
                    granted.push(bench.store.clock().now());
                    bench.give_back(&ask).await;
                }
                bench.finish(bench.living, run, succeed()).await;
            }
            bench.pass(millis(2_400 + 1_907 * (round % 5))).await;
        }
        for from in &granted {
            let in_window = granted.iter().filter(|at| (*from..*from + secs(60)).contains(*at)).count();
            assert!(in_window <= 4, "{in_window} in one window");
        }
        assert!(granted.len() > 20, "only {} were granted", granted.len());
    }

    async fn what_is_given_back_gives_no_start_back(bench: Bench) {
        let runs = bench.runs(3).await;
        for run in &runs[..2] {
            assert!(bench.is_granted(&at_rate("2/m", *run)).await);
            assert!(bench.is_granted(&at_rate("2/m", *run)).await, "it has it, and spends nothing");
            bench.give_back(&at_rate("2/m", *run)).await;
        }
        assert!(!bench.is_granted(&at_rate("2/m", runs[2])).await);
    }

    async fn the_first_in_line_is_due_when_the_rate_opens_and_those_behind_it_later(bench: Bench) {
        let runs = bench.runs(4).await;
        assert!(bench.is_granted(&at_rate("2/m", runs[0])).await);
        bench.hands.advance(secs(2));
        assert!(bench.is_granted(&at_rate("2/m", runs[1])).await);
        for run in &runs[..2] {
            bench.succeeds(&at_rate("2/m", *run)).await;
        }
        bench.hands.advance(secs(2));
        assert_eq!(bench.stand_in_line(&at_rate("2/m", runs[2])).await, START + secs(60));
        assert!(bench.stand_in_line(&at_rate("2/m", runs[3])).await >= START + secs(304));
        bench.pass(millis(55_999)).await;
        assert!(bench.come(5).await.is_empty());
        bench.hands.advance(millis(1));
        let came = bench.come(5).await;
        assert_eq!((came.len(), came[0].job), (1, runs[2].job));
        assert!(bench.is_granted(&at_rate("2/m", came[0])).await);
        assert_eq!(bench.due(runs[3].job).await, START + secs(62), "it is the first now");
    }

    async fn a_beat_that_sees_a_rate_open_calls_the_first(bench: Bench) {
        let runs = bench.runs(3).await;
        assert!(bench.is_granted(&at_rate("1/s", runs[0])).await);
        let due = bench.refused(&at_rate("1/s", runs[1])).await;
        assert_eq!(due, START + secs(1));
        bench.hands.advance(secs(1));
        bench.beat_for(&runs, &runs[..1]).await;
        assert!(!bench.is_granted(&at_rate("1/s", runs[2])).await, "it is reserved");
        // Its run ends later than the limit has opened.
        bench.end_in_line(runs[1], START + secs(90)).await;
        assert!(bench.is_called(runs[1].job).await);
        bench.hands.advance(RESERVED);
        assert!(bench.is_granted(&at_rate("1/s", runs[2])).await);
    }

    async fn who_asks_for_the_number_alone_is_not_counted_by_a_rate(bench: Bench) {
        let runs = bench.runs(4).await;
        assert!(bench.is_granted(&at_rate("2/m", runs[0])).await);
        assert!(bench.is_granted(&one_of(5, runs[1])).await);
        assert!(bench.is_granted(&at_rate("2/m", runs[2])).await);
        assert!(!bench.is_granted(&at_rate("2/m", runs[3])).await);
    }

    async fn a_permit_that_is_reserved_without_a_rate_is_not_counted_by_a_rate(bench: Bench) {
        let runs = bench.runs(3).await;
        assert!(bench.is_granted(&one_of(1, runs[0])).await);
        bench.stand_in_line(&one_of(1, runs[1])).await;
        bench.give_back(&one_of(1, runs[0])).await;
        assert!(bench.is_granted(&at_rate("1/m", runs[2])).await);
    }

    async fn a_permit_that_is_reserved_with_a_rate_is_counted(bench: Bench) {
        let runs = bench.runs(4).await;
        let both = |run| Ask { rates: rates("2/m"), ..one_of(1, run) };
        assert!(bench.is_granted(&both(runs[0])).await);
        bench.stand_in_line(&both(runs[1])).await;
        bench.give_back(&both(runs[0])).await;
        assert!(bench.is_called(runs[1].job).await);
        assert!(!bench.is_granted(&at_rate("2/m", runs[2])).await);
        assert!(!bench.is_granted(&one_of(2, runs[3])).await, "the one before it holds it back");
    }

    async fn several_rates_and_the_number_all_hold(bench: Bench) {
        let runs = bench.runs(4).await;
        let ask = |run| Ask { rates: rates("2/s, 3/m"), ..one_of(2, run) };
        assert!(bench.is_granted(&ask(runs[0])).await);
        assert!(bench.is_granted(&ask(runs[1])).await);
        bench.hands.advance(secs(1));
        bench.stand_in_line(&ask(runs[2])).await;
        bench.give_back(&ask(runs[0])).await;
        let third = bench.come(1).await[0];
        assert!(bench.is_granted(&ask(third)).await);
        bench.stand_in_line(&ask(runs[3])).await;
        bench.give_back(&ask(runs[1])).await;
        assert_eq!(bench.due(runs[3].job).await, START + secs(60), "now time alone opens it");
    }

    async fn a_spread_rate_spaces_its_permits_evenly(bench: Bench) {
        let runs = bench.runs(3).await;
        let ask = |run| at_rate("10/m spread", run);
        assert!(bench.is_granted(&ask(runs[0])).await);
        assert_eq!(bench.stand_in_line(&ask(runs[1])).await, START + secs(6));
        bench.stand_in_line(&ask(runs[2])).await;
        bench.pass(secs(6)).await;
        let came = bench.come(5).await;
        assert_eq!((came.len(), came[0].job), (1, runs[1].job));
        assert!(bench.is_granted(&ask(came[0])).await);
        assert_eq!(bench.due(runs[2].job).await, START + secs(12));
    }

    async fn rates_that_differ_are_each_exact(bench: Bench) {
        let runs = bench.runs(5).await;
        assert!(bench.is_granted(&at_rate("3/m", runs[0])).await);
        for run in &runs[1..3] {
            bench.pass(secs(2)).await;
            assert!(bench.is_granted(&at_rate("1/s", *run)).await);
        }
        bench.pass(secs(4)).await;
        assert_eq!(bench.refused(&at_rate("3/m", runs[3])).await, START + secs(60));
        assert!(!bench.is_granted(&at_rate("1/s", runs[4])).await, "it stands behind the other");
    }

    async fn a_log_ends_only_when_it_has_left_its_window(bench: Bench) {
        let run = bench.runs(1).await[0];
        assert!(bench.is_granted(&at_rate("1/h", run)).await);
        bench.give_back(&at_rate("1/h", run)).await;
        bench.finish(bench.living, run, succeed()).await;
        bench.pass(secs(3_600) - millis(1)).await;
        let run = bench.runs(1).await[0];
        assert_eq!(bench.refused(&at_rate("1/h", run)).await, START + secs(3_600));
        bench.hands.advance(millis(1));
        assert!(bench.is_granted(&at_rate("1/h", run)).await);
    }
}
