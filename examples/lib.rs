//! The runnable programs of this folder (`cargo run --example quickstart`), and the programs of the README and the book,
//! which are compiled, and run where they can be, as this crate's doc tests.

/// One item for each page, so that a failing block names its page.
#[cfg(doctest)]
mod pages {
    macro_rules! page {
        ($name:ident, $path:literal) => {
            #[doc = include_str!($path)]
            pub struct $name;
        };
    }

    page!(Readme, "../README.md");
    page!(ComingFrom, "../book/src/coming-from.md");
    page!(Doctor, "../book/src/doctor.md");
    page!(Enqueueing, "../book/src/enqueueing.md");
    page!(Endings, "../book/src/endings.md");
    page!(Knobs, "../book/src/knobs.md");
    page!(Explain, "../book/src/explain.md");
    page!(Introduction, "../book/src/introduction.md");
    page!(Schedules, "../book/src/schedules.md");
    page!(Sqlite, "../book/src/sqlite.md");
    page!(Starvation, "../book/src/starvation.md");
    page!(Tasks, "../book/src/tasks.md");
    page!(Testing, "../book/src/testing.md");
    page!(Unique, "../book/src/unique.md");
    page!(Watching, "../book/src/watching.md");
    page!(Workers, "../book/src/workers.md");
}
