//! How it behaves whatever it is asked: URLs, passwords, pipes, exit codes, and that it creates nothing.

use crate::stage::{Stage, assert_told, program, run};

#[tokio::test]
async fn a_store_must_be_named_and_be_there() {
    let folder = tempfile::tempdir().expect("the temporary folder can be written");
    let file = folder.path().join("jobs.db");
    let url = format!("sqlite://{}", file.display());
    let mut told = String::new();
    let lines: [&[&str]; 5] = [
        &["jobs"],
        &["--url", &url, "jobs"],
        &["--url", "sqlite::memory:", "jobs"],
        &["--url", "jobs.db", "jobs"],
        &["--url", "mysql://localhost", "jobs"],
    ];
    for words in lines {
        told += &run(words, "").written(words);
    }
    assert_told("no_store", told);
    assert!(!file.exists(), "nothing is created");

    let mut named = program(&["jobs"]);
    let output = named.env("FLEXIQ_URL", &url).output().expect("it runs");
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no such file"), "{output:?}");
    let redis = run(&["--url", &crate::redis_server::url(), "jobs"], "");
    assert!(redis.code == Some(1) && redis.stderr.contains("there is no store with the prefix"), "{redis:?}");
}

#[tokio::test]
async fn a_password_is_never_printed() {
    let url = "redis://ada:sesame@127.0.0.1:1";
    let lines: [&[&str]; 6] = [
        &["--url", url, "jobs"],
        &["jobs", url],
        &["--uri=redis://ada:sesame@127.0.0.1:1", "jobs"],
        &["--url", "redis://ada:sesame@127.0.0.1:1/x", "jobs"],
        &["--url", "rdis://ada:sesame@127.0.0.1", "jobs"],
        &[url],
    ];
    for words in lines {
        let ran = run(words, "");
        assert!(ran.code == Some(1) || ran.code == Some(2), "{ran:?}");
        assert!(!format!("{ran:?}").contains("sesame"), "{ran:?}");
    }
}

#[tokio::test]
async fn a_payload_is_not_shown_where_nobody_knows_what_is_secret() {
    let stage = Stage::sqlite().await;
    let file = stage.url.strip_prefix("sqlite://").expect("it is one");
    let tables = rusqlite::Connection::open(file).expect("it is there");
    tables.execute("DELETE FROM flexiq_tasks", []).expect("the table is there");
    let id = "00000000-0000-0000-0000-000000000001";
    let hidden = stage.run(&["show", id, "--payload"]);
    assert!(hidden.code == Some(1) && hidden.stderr.contains("--undeclared shows all of them"), "{hidden:?}");
    assert!(!format!("{hidden:?}").contains("sesame"), "{hidden:?}");
    let asked = stage.run(&["show", id, "--payload", "--undeclared"]);
    assert!(asked.code == Some(0) && asked.stdout.contains("sesame"), "{asked:?}");
}

#[tokio::test]
async fn a_pipe_that_is_closed_is_no_failure() {
    let stage = Stage::sqlite().await;
    for words in [&["jobs", "--json"][..], &["completions", "bash"], &["--help"]] {
        let mut process = program(&[&["--url", &stage.url], words].concat()).spawn().expect("it starts");
        drop(process.stdout.take());
        let output = process.wait_with_output().expect("it ends");
        assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{output:?}");
    }
}

#[tokio::test]
async fn nothing_is_coloured_and_what_a_terminal_would_obey_is_not_printed() {
    let stage = Stage::sqlite().await;
    let words = serde_json::json!({ "account": "\u{1b}[31mred" }).to_string();
    let partition = "\u{1b}[31mred";
    let enqueued = stage.run(&["enqueue", "build_report", &words, "--partition", partition]);
    assert_eq!(enqueued.code, Some(0), "{enqueued:?}");
    for words in
        [&["jobs"][..], &["jobs", "--json"], &["--help"], &["jobs", "--help"], &["jobs", "--nonsense"]]
    {
        let ran = stage.run(words);
        assert!(!format!("{}{}", ran.stdout, ran.stderr).contains('\u{1b}'), "{ran:?}");
    }
}

#[test]
fn help_names_every_command_and_shells_can_complete_them() {
    let lines: [&[&str]; 4] = [&["--help"], &["limits", "--help"], &[], &["completions", "tcsh"]];
    assert_told("help", lines.iter().map(|words| run(words, "").written(words)).collect());
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&["completions", shell], "");
        assert!(script.code == Some(0) && script.stdout.contains("enqueue"), "{shell}");
    }
}
