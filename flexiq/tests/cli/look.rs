//! What is only shown.

use crate::stage::{Stage, assert_told};

#[tokio::test]
async fn stats_shows_what_each_task_has_and_what_keeps_it() {
    let stage = Stage::sqlite().await;
    assert_told("stats", stage.transcript(&[&["stats"], &["stats", "--json"], &["stats", "extra"]]));
}

#[tokio::test]
async fn top_is_drawn_once_where_nobody_watches() {
    let stage = Stage::sqlite().await;
    let lines: [&[&str]; 3] = [&["top"], &["top", "--every", "1ms"], &["top", "--every", "often"]];
    assert_told("top", stage.transcript(&lines));
    assert_eq!(stage.run(&["top", "--json"]).code, Some(0));
}

#[tokio::test]
async fn jobs_are_listed_filtered_and_paged() {
    let stage = Stage::sqlite().await;
    let lines: [&[&str]; 10] = [
        &["jobs"],
        &["jobs", "--json", "--state", "running"],
        &["jobs", "--task", "send_email", "--state", "ready"],
        &["jobs", "--queue", "reports", "--limit", "1"],
        &["jobs", "--queue", "emials"],
        &["jobs", "--task", "send_emial"],
        &["jobs", "--state", "ded"],
        &["jobs", "--limit", "0"],
        &["jobs", "--after", "1234"],
        &["jobs", "--state", "expired", "--json"],
    ];
    assert_told("jobs", stage.transcript(&lines));
}

#[tokio::test]
async fn a_page_of_jobs_goes_on_where_its_cursor_says() {
    let stage = Stage::sqlite().await;
    let all: serde_json::Value =
        serde_json::from_str(&stage.run(&["jobs", "--json"]).stdout).expect("it is JSON");
    let mut jobs = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let mut words = vec!["jobs", "--json", "--limit", "1"];
        if let Some(after) = &after {
            words.extend(["--after", after]);
        }
        let page: serde_json::Value = serde_json::from_str(&stage.run(&words).stdout).expect("it is JSON");
        jobs.extend(page["jobs"].as_array().expect("a list").iter().cloned());
        match page["next"].as_str() {
            Some(next) => after = Some(next.to_owned()),
            None => break,
        }
    }
    assert_eq!(serde_json::Value::Array(jobs), all["jobs"]);
    let other = stage.run(&["jobs", "--queue", "reports", "--after", &after.expect("there were pages")]);
    assert!(other.code == Some(0) || other.stderr.contains("a list with other filters"), "{other:?}");
}

#[tokio::test]
async fn dead_jobs_are_listed_with_their_error() {
    let stage = Stage::sqlite().await;
    let lines: [&[&str]; 3] = [&["dead"], &["dead", "--json"], &["dead", "--queue", "email"]];
    assert_told("dead", stage.transcript(&lines));
}

#[tokio::test]
async fn a_job_is_shown_without_its_secrets() {
    let stage = Stage::sqlite().await;
    let (sent, dead) = ("00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002");
    let told = stage.transcript(&[
        &["show", dead],
        &["show", sent, "--payload"],
        &["show", sent, "--payload", "--json"],
        &["show", "00000000-0000-0000-0000-000000000099"],
        &["show", "1"],
    ]);
    assert!(!told.contains("sesame"), "{told}");
    assert_told("show", told);
}

#[tokio::test]
async fn it_is_said_why_a_job_waits() {
    let stage = Stage::sqlite().await;
    let lines: [&[&str]; 9] = [
        &["why", "00000000-0000-0000-0000-000000000004"],
        &["why", "00000000-0000-0000-0000-000000000004", "--json"],
        &["why", "00000000-0000-0000-0000-000000000007"],
        &["why", "00000000-0000-0000-0000-000000000001"],
        &["why", "00000000-0000-0000-0000-000000000099"],
        &["why", "--task", "send_email"],
        &["why", "--task", "build_report", "--json"],
        &["why", "--task", "send_emial"],
        &["why"],
    ];
    assert_told("why", stage.transcript(&lines));
}

#[tokio::test]
async fn tasks_queues_and_workers_are_listed() {
    let stage = Stage::sqlite().await;
    assert_told(
        "tasks",
        stage.transcript(&[&["tasks"], &["tasks", "--json"], &["tasks", "--queue", "emails"]]),
    );
    assert_told("queues", stage.transcript(&[&["queues"], &["queues", "--json"], &["queue"]]));
    assert_told("workers", stage.transcript(&[&["workers"], &["workers", "--json"], &["worker"]]));
}

#[tokio::test]
async fn a_worker_that_is_alive_is_told_with_its_slots() {
    let stage = Stage::sqlite().await;
    let worker =
        stage.queue().await.worker().async_concurrency(5).workers(2).start().await.expect("it starts");
    let label = format!(":{}", std::process::id());
    let told = stage.run(&["workers"]).stdout;
    assert!(told.contains(&label) && told.contains("emails, reports"), "{told}");
    let told: serde_json::Value =
        serde_json::from_str(&stage.run(&["workers", "--json"]).stdout).expect("it is JSON");
    let ours = told["workers"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|worker| worker["label"].as_str().is_some_and(|of| of.ends_with(&label)));
    let ours = ours.expect("it is alive");
    assert_eq!(ours["tasks"], serde_json::json!(["build_report", "send_email"]));
    worker.shutdown().await.expect("it ends");
}

#[tokio::test]
async fn metrics_are_a_page_for_prometheus() {
    let stage = Stage::sqlite().await;
    let page = stage.run(&["metrics"]);
    assert!(page.code == Some(0) && page.stdout.contains("# TYPE flexiq_jobs gauge"), "{page:?}");
    assert_told("metrics", stage.transcript(&[&["metrics", "--format", "json"]]));
}

#[tokio::test]
async fn the_same_is_told_of_a_store_on_redis() {
    let (sqlite, redis) = (Stage::sqlite().await, Stage::redis().await);
    let id = "00000000-0000-0000-0000-000000000004";
    let lines: [&[&str]; 10] = [
        &["stats"],
        &["queues"],
        &["tasks", "--json"],
        &["workers"],
        &["limits"],
        &["jobs"],
        &["jobs", "--task", "send_email", "--state", "ready"],
        &["dead"],
        &["show", id, "--payload"],
        &["jobs", "--queue", "emials"],
    ];
    for words in lines {
        assert_eq!(redis.run(words), sqlite.run(words), "{words:?}");
    }
    // It also says since when a job runs, to the second.
    let why = |stage: &Stage| stage.run(&["why", id]).stdout.split(" since ").next().map(str::to_owned);
    assert_eq!(why(&redis), why(&sqlite));
}
