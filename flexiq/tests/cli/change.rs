//! What changes something.

use flexiq::State;

use crate::stage::{Stage, assert_told, id, run};

const READY: &str = "00000000-0000-0000-0000-000000000004";
const DEAD: &str = "00000000-0000-0000-0000-000000000002";
const RUNNING: &str = "00000000-0000-0000-0000-000000000003";
const UNKNOWN: &str = "00000000-0000-0000-0000-000000000099";

#[tokio::test]
async fn limits_are_listed_set_and_cleared() {
    let stage = Stage::sqlite().await;
    let lines: [&[&str]; 14] = [
        &["limits"],
        &["limits", "--json"],
        &[
            "limits",
            "set",
            "--queue",
            "emails",
            "--max-concurrent",
            "4",
            "--rate",
            "100/m",
            "--max-pending",
            "1000",
        ],
        &["limits", "set", "--task", "build_report", "--partition", "acme", "--rate", "10/s, 100/m spread"],
        &["limits", "clear", "--queue", "emails", "--rate", "--max-pending"],
        &["limits", "clear", "--task", "send_email", "--max-concurrent"],
        &["limits", "set", "--queue", "emails"],
        &["limits", "set", "--max-concurrent", "4"],
        &["limits", "set", "--queue", "emails", "--max-concurrent", "0"],
        &["limits", "set", "--queue", "emails", "--rate", "100/x"],
        &["limits", "set", "--task", "send_email", "--max-pending", "10"],
        &["limits", "set", "--task", "send_emial", "--max-concurrent", "1"],
        &["limits", "set", "--task", "send_email", "--partition", "acme", "--max-concurrent", "1"],
        &["limits", "clear", "--queue", "emails"],
    ];
    assert_told("limits", stage.transcript(&lines));
}

#[tokio::test]
async fn queues_tasks_and_partitions_are_paused_and_resumed() {
    let stage = Stage::sqlite().await;
    let lines: [&[&str]; 7] = [
        &["resume", "--queue", "reports"],
        &["pause", "--task", "send_email", "--json"],
        &["pause", "--task", "build_report", "--partition", "acme"],
        &["limits"],
        &["pause", "--queue", "repotrs"],
        &["pause", "--partition", "acme"],
        &["resume"],
    ];
    assert_told("pause", stage.transcript(&lines));
}

#[tokio::test]
async fn a_job_is_enqueued_by_the_name_of_its_task() {
    let stage = Stage::sqlite().await;
    let email = r#"{"to":"ada@example.org","token":"sesame"}"#;
    let fixed = "00000000-0000-0000-0000-000000000021";
    let told = stage.transcript(&[
        &["enqueue", "send_email", email, "--id", fixed, "--delay", "1h30m", "--priority", "-5"],
        &["enqueue", "send_email", email, "--id", fixed, "--json"],
        &["enqueue", "send_email", email],
        &["enqueue", "build_report", r#"{"account":"acme"}"#, "--partition", "acme", "--json"],
        &["enqueue", "build_report", r#"{"account":"acme"}"#],
        &["enqueue", "send_emial", email],
        &["enqueue", "send_email", r#"{"to":"ada@example.org"}"#],
        &["enqueue", "send_email", r#"{"to":"ada@example.org","tokne":"x"}"#],
        &["enqueue", "send_email", r#"{"to": ada}"#],
        &["enqueue", "send_email", "[]"],
        &["enqueue", "send_email", email, "--delay", "soon"],
        &["enqueue", "send_email", email, "--priority", "101"],
        &["enqueue", "send_email", email, "--queue", "reports"],
        &["enqueue", "send_email", email, "--id", "7"],
    ]);
    assert_told("enqueue", told);
    let job = stage.queue().await.status(id(0x21)).await.expect("it is stored");
    assert_eq!((job.task.as_str(), job.priority), ("send_email", -5));
    assert!(matches!(job.state, State::Scheduled(_)), "{job:?}");
}

#[tokio::test]
async fn arguments_are_read_from_the_standard_input() {
    let stage = Stage::sqlite().await;
    let words = ["--url", &stage.url, "enqueue", "send_email", "-"];
    let enqueued = run(&words, r#"{"to":"ada@example.org","token":"sesame"}"#);
    assert_eq!((enqueued.code, enqueued.stderr.as_str()), (Some(0), ""));
    let refused = run(&words, &" ".repeat((1 << 20) + 1));
    assert_eq!(refused.code, Some(1), "{refused:?}");
}

#[tokio::test]
async fn jobs_are_cancelled_by_id_and_by_kind() {
    let stage = Stage::sqlite().await;
    let lines: [&[&str]; 10] = [
        &["cancel", READY, RUNNING],
        &["cancel", DEAD, UNKNOWN, "--json"],
        &["cancel", "--queue", "reports"],
        &["cancel", "--queue", "reports", "--yes", "--json"],
        &["cancel", "--task", "send_email", "--state", "dead", "--yes"],
        &["cancel", "--task", "send_emial", "--yes"],
        &["cancel", "--all", "--yes"],
        &["cancel", "--all", "--queue", "emails"],
        &["cancel"],
        &["cancel", READY, "--all"],
    ];
    assert_told("cancel", stage.transcript(&lines));
}

#[tokio::test]
async fn dead_jobs_are_retried() {
    let stage = Stage::sqlite().await;
    let lines: [&[&str]; 5] = [
        &["retry", DEAD],
        &["retry", DEAD, READY, "--json"],
        &["retry", "--all", "--yes"],
        &["retry", "--all", "--state", "cancelled", "--yes"],
        &["retry", "--all", "--state", "running", "--yes"],
    ];
    assert_told("retry", stage.transcript(&lines));
    assert_eq!(stage.queue().await.status(id(2)).await.expect("it is there").state, State::Ready);
}

#[tokio::test]
async fn a_job_with_a_unique_key_is_enqueued_once_and_not_retried_beside_another() {
    let stage = Stage::sqlite().await;
    let email = r#"{"to":"ada@example.org","token":"sesame"}"#;
    let enqueue = || {
        let told =
            stage.run(&["enqueue", "send_email", email, "--unique-key", "welcome ada", "--json"]).stdout;
        let told: serde_json::Value = serde_json::from_str(&told).expect("it is JSON");
        (told["id"].as_str().expect("an id").to_owned(), told["is_duplicate"] == true)
    };
    let (first, is_duplicate) = enqueue();
    assert!(!is_duplicate);
    assert_eq!(enqueue(), (first.clone(), true));
    stage.run(&["cancel", &first]);
    let (second, is_duplicate) = enqueue();
    assert!(!is_duplicate && second != first);
    let refused = stage.run(&["retry", &first]);
    assert!(refused.stderr.contains(&format!("job {second} has its unique key")), "{refused:?}");
    assert_eq!(refused.code, Some(1));
    let swept = stage.run(&["retry", "--all", "--state", "cancelled", "--yes"]);
    assert!(swept.stdout.ends_with("1 left as they are\n"), "{swept:?}");
    assert_eq!((swept.code, swept.stderr.as_str()), (Some(0), ""));
}

#[tokio::test]
async fn ended_jobs_are_deleted() {
    let stage = Stage::sqlite().await;
    let lines: [&[&str]; 4] = [
        &["delete", DEAD, READY],
        &["delete", "--all", "--state", "succeeded", "--yes", "--json"],
        &["delete", "--task", "send_email", "--yes"],
        &["delete", UNKNOWN],
    ];
    assert_told("delete", stage.transcript(&lines));
}

#[tokio::test]
async fn a_store_is_checked_and_repaired() {
    let stage = Stage::sqlite().await;
    let mut told = stage.transcript(&[&["doctor"]]);
    let file = stage.url.strip_prefix("sqlite://").expect("it is one");
    let tables = rusqlite::Connection::open(file).expect("it is there");
    tables
        .execute("UPDATE flexiq_queues SET dead = dead + 7 WHERE name = 'emails'", [])
        .expect("it is there");
    told += &stage.transcript(&[
        &["doctor"],
        &["doctor", "--json"],
        &["doctor", "--fix"],
        &["doctor", "--json"],
        &["doctor", "emails"],
    ]);
    assert_told("doctor", told);
}

#[tokio::test]
async fn thousands_are_worked_on_page_by_page_on_every_store() {
    for stage in [Stage::sqlite().await, Stage::redis().await] {
        let queue = stage.queue().await;
        queue.resume_queue("reports").await.expect("it is known");
        let jobs = (0..2_500).map(|number| {
            queue.enqueue_by_name(
                "build_report",
                serde_json::json!({ "account": format!("of {}", number % 7) }),
            )
        });
        queue.enqueue_many(jobs).await.expect("they are stored");
        let cancelled = stage.run(&["cancel", "--queue", "reports", "--yes"]);
        assert_eq!(cancelled.stdout, "2502 jobs cancelled, 0 told to stop, 0 had ended\n", "{cancelled:?}");
        let retried = stage.run(&["retry", "--queue", "reports", "--state", "cancelled", "--yes"]);
        assert_eq!(retried.stdout, "2502 jobs made ready, 0 left as they are\n", "{retried:?}");
        stage.run(&["cancel", "--queue", "reports", "--yes"]);
        let deleted = stage.run(&["delete", "--queue", "reports", "--yes"]);
        assert_eq!(deleted.stdout, "2502 jobs deleted, 0 left as they are\n", "{deleted:?}");
    }
}
