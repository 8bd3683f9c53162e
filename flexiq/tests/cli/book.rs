//! The chapter on the command line shows what the program prints.

use crate::stage::{Stage, run};

const CHAPTER: &str = include_str!("../../../book/src/cli.md");

#[tokio::test]
async fn the_book_shows_what_the_program_prints() {
    let blocks: Vec<&str> =
        CHAPTER.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() > 5, "{blocks:?}");
    for block in blocks {
        // Each begins anew with the story of the stage.
        let stage = Stage::sqlite().await;
        for shown in block.split("$ ").filter(|shown| !shown.is_empty()) {
            let (command, printed) = shown.split_once('\n').expect("it prints something");
            let words = words_of(command);
            assert_eq!(words[0], "flexiq");
            let words: Vec<&str> =
                ["--url", &stage.url].into_iter().chain(words[1..].iter().map(String::as_str)).collect();
            assert_eq!(run(&words, "").stdout, printed, "{command}");
        }
    }
}

#[test]
fn the_book_names_every_command() {
    let help = run(&["--help"], "").stdout;
    let commands =
        help.split("Commands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).expect("they are listed");
    for line in commands.lines() {
        let command = line.split_whitespace().next().expect("a command");
        assert!(CHAPTER.contains(&format!("`{command}")), "{command}");
    }
}

/// The words of a line, as a shell takes them: single quotes hold spaces.
fn words_of(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        match index % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}
