//! The page for Prometheus is what its format says, and no label grows with jobs or partitions.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::queue;

#[flexiq::task(queue = "pages", partition_by = customer, max_concurrent = 3)]
async fn exported(customer: String) {
    drop(customer);
}

/// A page, read strictly: each figure with its type and the values of its labels.
#[derive(Debug, Default)]
struct Page {
    types: BTreeMap<String, String>,
    values: BTreeMap<(String, BTreeMap<String, String>), f64>,
}

impl Page {
    fn read(text: &str) -> Self {
        assert!(text.ends_with('\n'), "the last line ends, too");
        let (mut page, mut described) = (Self::default(), String::new());
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, words) = help.split_once(' ').expect("a name and words");
                assert!(!words.is_empty() && !words.contains('\\'), "{line}");
                described = name.to_owned();
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').expect("a name and a type");
                assert_eq!(name, described, "HELP stands right before TYPE");
                assert!(page.types.insert(name.into(), kind.into()).is_none(), "{name} is told once");
            } else {
                let (series, value) = line.rsplit_once(' ').expect("a series and a value");
                let (name, labels) = read_series(series);
                assert_eq!(name, described, "the values of a figure stand together");
                let value = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
                assert!(page.values.insert((name, labels), value).is_none(), "{series} is told once");
            }
        }
        page
    }

    fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let labels = labels.iter().map(|(label, text)| ((*label).into(), (*text).into())).collect();
        let series = (name.to_owned(), labels);
        *self.values.get(&series).unwrap_or_else(|| panic!("no {series:?} in {self:#?}"))
    }
}

/// The name of a series, and its labels. `[a-zA-Z_:][a-zA-Z0-9_:]*`, then `{label="value",…}`.
fn read_series(text: &str) -> (String, BTreeMap<String, String>) {
    let is_name = |name: &str| {
        name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
            && name.starts_with(|letter: char| letter.is_ascii_alphabetic())
    };
    let (name, rest) = text.split_once('{').map_or((text, None), |(name, rest)| (name, Some(rest)));
    assert!(is_name(name), "{text}");
    let mut labels = BTreeMap::new();
    let mut rest = rest.map_or("", |rest| rest.strip_suffix('}').expect("labels end"));
    while !rest.is_empty() {
        let (label, after) = rest.split_once("=\"").expect("a label and its value");
        assert!(is_name(label), "{text}");
        let end = after.find('"').expect("a value ends");
        assert!(!after[..end].contains('\\'), "no name of ours needs an escape: {text}");
        assert!(labels.insert(label.into(), after[..end].into()).is_none(), "{label} is told once: {text}");
        rest = after[end + 1..].strip_prefix(',').unwrap_or(&after[end + 1..]);
    }
    (name.into(), labels)
}

#[tokio::test]
async fn the_page_tells_the_figures_of_the_store() {
    let (queue, clock) = queue().await;
    for _ in 0..5 {
        enqueue_exported(&queue, "acme".into()).await.expect("stored");
    }
    enqueue_exported(&queue, "acme".into()).delay(Duration::from_secs(60)).await.expect("stored");
    queue.set_queue_max_pending("pages", 100).await.expect("set");
    clock.advance(Duration::from_millis(2_500));
    let page = Page::read(&queue.prometheus().await.expect("the store answers"));
    assert!(page.types.values().all(|kind| kind == "gauge"), "{page:#?}");
    let of_task = [("queue", "pages"), ("task", "exported")];
    let of_state = |state| page.value("flexiq_jobs", &[of_task[0], of_task[1], ("state", state)]);
    assert_eq!((of_state("ready"), of_state("scheduled"), of_state("dead")), (5.0, 1.0, 0.0));
    assert_eq!(page.value("flexiq_oldest_ready_seconds", &of_task), 2.5);
    assert_eq!(page.value("flexiq_oldest_run_seconds", &of_task), 0.0);
    assert_eq!(page.value("flexiq_stranded", &of_task), 6.0);
    let of_queue = |figure| page.value(figure, &[("queue", "pages")]);
    assert_eq!((of_queue("flexiq_startable"), of_queue("flexiq_pending")), (5.0, 6.0));
    assert_eq!((of_queue("flexiq_max_pending"), of_queue("flexiq_paused")), (100.0, 0.0));
    assert_eq!((page.value("flexiq_workers", &[]), page.value("flexiq_drift", &[])), (0.0, 0.0));

    let worker = queue.worker().tasks([task_exported()]).start().await.expect("it starts");
    let page = Page::read(&queue.prometheus().await.expect("the store answers"));
    assert_eq!((page.value("flexiq_workers", &[]), page.value("flexiq_stranded", &of_task)), (1.0, 0.0));
    let slots = page.values.keys().filter(|(name, _)| name == "flexiq_fleet_slots").count();
    assert_eq!(slots, 4, "two kinds in two states");
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn no_label_grows_with_jobs_or_partitions() {
    let (queue, _clock) = queue().await;
    let series = async || -> BTreeSet<_> {
        let page = Page::read(&queue.prometheus().await.expect("the store answers"));
        page.values.into_keys().collect()
    };
    enqueue_exported(&queue, "acme".into()).await.expect("stored");
    let of_one = series().await;
    for customer in 0..50 {
        enqueue_exported(&queue, format!("customer {customer} \"of\" \\ many\n")).await.expect("stored");
    }
    queue.pause_partition("exported", "acme").await.expect("paused");
    assert_eq!(series().await, of_one);
}
