//! The links of the papers and of the book: each leads to a file that is there, and to a heading that it has. Nothing is
//! asked of the network.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// What a page has that others may link to, and what it links to itself.
#[derive(Default)]
struct Page {
    anchors: BTreeSet<String>,
    links: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The pages of a folder, by their path from the root.
fn pages_of(folder: &str) -> BTreeMap<PathBuf, Page> {
    let entries = std::fs::read_dir(root().join(folder)).expect("a folder of the project");
    let paths = entries.map(|entry| Path::new(folder).join(entry.expect("an entry").file_name()));
    let pages = paths.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.map(|path| (path.clone(), read(&path))).collect()
}

fn read(path: &Path) -> Page {
    let text = std::fs::read_to_string(root().join(path)).expect("a page is text");
    let (mut page, mut heading) = (Page::default(), None);
    for event in Parser::new_ext(&text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => page.anchors.extend(heading.take().map(|text| anchor(&text))),
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                page.links.push(dest_url.into_string());
            }
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            _ => {}
        }
    }
    page
}

/// The anchor that mdBook gives a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.map(|letter| if letter == ' ' { '-' } else { letter.to_ascii_lowercase() }).collect()
}

/// A path without `..`, as far as it goes.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        if part != Component::ParentDir || !plain.pop() {
            plain.push(part);
        }
        plain
    })
}

/// What is wrong with a link, if anything is.
fn fault(from: &Path, link: &str, pages: &BTreeMap<PathBuf, Page>) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
    let target = match file {
        "" => from.to_owned(),
        _ => plain(&from.parent().expect("a page lies in a folder").join(file)),
    };
    if !root().join(&target).exists() {
        return Some(format!("{} links to {link}, which is not there", from.display()));
    }
    let has_it = |anchor: &str| pages.get(&target).is_none_or(|page| page.anchors.contains(anchor));
    (!anchor.is_none_or(has_it))
        .then(|| format!("{} links to {link}, which has no such heading", from.display()))
}

#[test]
fn every_link_of_the_papers_and_the_book_leads_somewhere() {
    let mut pages = pages_of("book/src");
    pages.extend(pages_of(""));
    let links: Vec<(&Path, &str)> = pages
        .iter()
        .flat_map(|(path, page)| page.links.iter().map(move |link| (path.as_path(), link.as_str())))
        .collect();
    assert!(links.len() > 50, "only {} links were found", links.len());
    let faults: Vec<_> = links.iter().filter_map(|(from, link)| fault(from, link, &pages)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_chapter_of_the_book_stands_in_its_summary() {
    let pages = pages_of("book/src");
    let summary = Path::new("book/src/SUMMARY.md");
    let listed: BTreeSet<&str> = pages[summary].links.iter().map(String::as_str).collect();
    let names = pages.keys().filter(|path| *path != summary).filter_map(|path| path.file_name()?.to_str());
    assert_eq!(listed, names.collect());
}
