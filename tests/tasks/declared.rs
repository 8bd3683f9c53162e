//! Every argument of the attribute reaches the definition, and what is left out has its default.

use std::time::Duration;

use flexiq::__private::{Backoff, Budgets, Kind, Rate, UniqueUntil};
use flexiq::internals::Declaration;

#[flexiq::task]
async fn plain_defaults() {}

#[flexiq::task(
    name = "all.of-them",
    queue = "reports",
    max_concurrent = 2,
    max_in_flight_per_task = 3,
    rate_limit = "10/s, 100000/d spread",
    partition_by = account,
    max_concurrent_per_partition = 4,
    rate_limit_per_partition = "5/h",
    max_pending_per_partition = 6,
    max_retries = 0,
    retry_backoff = "fixed 5s",
    max_deferrals = 7,
    max_losses = 8,
    timeout = "30s",
    expires = "1h30m",
    result_ttl = "1d",
    priority = -9,
    unique_by = (account, "x"),
    unique_until = "start",
    cron = "0 */5 * * * MON-FRI",
    timezone = "Europe/Stockholm",
    catch_up = "one",
    crate = ::flexiq,
)]
fn all_arguments(
    #[default] account: String,
    #[default = 7]
    #[secret]
    pin: u16,
) {
    let _ = (account, pin);
}

#[flexiq::task(any_queue, retry_backoff = "2s..1m", unique = "args", cron = "0 0 L * *")]
async fn anywhere() {}

#[test]
fn what_is_left_out_has_its_default() {
    let task = task_plain_defaults().definition();
    assert_eq!(
        (task.name, task.queue, task.any_queue, task.kind),
        ("plain_defaults", "default", false, Kind::Async)
    );
    assert_eq!((task.max_concurrent, task.max_in_flight_per_task, task.priority), (None, None, 0));
    assert_eq!(task.budgets, Budgets::DEFAULT);
    assert_eq!((task.timeout, task.expires, task.result_ttl), (None, None, None));
    assert!(task.rates.is_empty() && task.parameters.is_empty() && task.states.is_empty());
    assert!(task.partition.is_none() && task.unique.is_none() && task.cron.is_none());
    assert!(task.not_built().is_empty());
}

#[test]
fn every_argument_reaches_the_definition() {
    let task = task_all_arguments().definition();
    let rate = |starts, secs, spread| Rate { starts, period: Duration::from_secs(secs), spread };
    assert_eq!(
        (task.name, task.queue, task.any_queue, task.kind),
        ("all.of-them", "reports", false, Kind::Plain)
    );
    assert_eq!((task.max_concurrent, task.max_in_flight_per_task, task.priority), (Some(2), Some(3), -9));
    assert_eq!(task.rates, [rate(10, 1, false), rate(100_000, 86_400, true)]);
    let each = task.partition.expect("partition_by");
    assert_eq!((each.max_concurrent, each.max_pending), (Some(4), Some(6)));
    assert_eq!(each.rates, [rate(5, 3_600, false)]);
    let backoff = Backoff::Fixed(Duration::from_secs(5));
    assert_eq!(task.budgets, Budgets { max_retries: 0, backoff, max_deferrals: Some(7), max_losses: 8 });
    assert_eq!(task.timeout, Some(Duration::from_secs(30)));
    assert_eq!(task.expires, Some(Duration::from_secs(5_400)));
    assert_eq!(task.result_ttl, Some(Duration::from_secs(86_400)));
    let unique = task.unique.expect("unique_by");
    assert!(unique.key.is_some() && unique.until == UniqueUntil::Start);
    let cron = task.cron.expect("cron");
    assert_eq!(
        (cron.pattern, cron.timezone, cron.catch_up),
        ("0 */5 * * * MON-FRI", "Europe/Stockholm", true)
    );
    assert_eq!((task.place.module, task.place.file), ("tasks::declared", file!()));
    assert_eq!(task.not_built(), ["cron beside unique"]);
}

#[test]
fn a_flag_and_a_word_reach_the_definition_too() {
    let task = task_anywhere().definition();
    let seconds = Duration::from_secs;
    assert_eq!(task.budgets.backoff, Backoff::Doubling { first: seconds(2), largest: seconds(60) });
    let unique = task.unique.expect("unique");
    assert!(task.any_queue && unique.key.is_none() && unique.until == UniqueUntil::Finish);
    let cron = task.cron.expect("cron");
    assert_eq!((cron.timezone, cron.catch_up), ("UTC", false));
    assert_eq!(task.not_built(), ["cron beside unique"]);
    let _: fn(&flexiq::Queue) -> flexiq::Enqueue<(), flexiq::AnyQueue> = enqueue_anywhere;
}

#[test]
fn a_declaration_holds_what_a_producer_without_the_body_needs() {
    let declaration = Declaration::from(task_all_arguments().definition());
    let json = serde_json::to_value(&declaration).expect("plain data");
    assert_eq!(
        json,
        serde_json::json!({
            "name": "all.of-them", "queue": "reports", "any_queue": false, "priority": -9, "expires_ms": 5_400_000,
            "parameters": [
                { "name": "account", "required": false, "secret": false },
                { "name": "pin", "required": false, "secret": true },
            ],
            "partitioned": true, "max_pending_per_partition": 6, "max_in_flight_per_task": 3,
            "unique": { "args": false, "until_start": true },
            "not_built": task_all_arguments().definition().not_built(),
        })
    );
}
