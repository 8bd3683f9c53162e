//! `assert_enqueued!` finds jobs by their arguments, and says what is there where it does not.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use flexiq::State;
use flexiq::testing::{TestQueue, assert_enqueued};
use serde::{Deserialize, Serialize};

mod shop {
    use super::Order;

    /// Kept under another name than its own.
    #[allow(unused_variables)]
    #[flexiq::task(queue = "shop", name = "shop.pack", priority = 3)]
    pub(super) async fn pack(order: Order, r#type: String, _weight: f32, #[secret] token: String) {}
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Order {
    customer: String,
    items: Vec<u32>,
}

#[flexiq::task(queue = "shop")]
async fn bill(_customer: String) {}

fn order() -> Order {
    Order { customer: "Ada".into(), items: vec![1, 2] }
}

async fn packing() -> TestQueue {
    let test = TestQueue::builder().await;
    for kind in ["box", "bag"] {
        shop::enqueue_pack(test.queue(), order(), kind.into(), 0.1, "hunter2".into()).await.expect("stored");
    }
    test
}

/// What a panic says.
fn refusal(assertion: impl FnOnce()) -> String {
    let refused = catch_unwind(AssertUnwindSafe(assertion)).expect_err("it does not hold");
    refused.downcast_ref::<String>().expect("it says why").clone()
}

#[tokio::test]
async fn jobs_are_found_by_some_or_all_of_their_arguments_whatever_their_types() {
    let test = packing().await;
    assert_enqueued!(test, shop::pack);
    assert_enqueued!(test, shop::pack, r#type == "box");
    assert_enqueued!(test, shop::pack, order == order(), r#type == String::from("bag"), _weight == 0.1_f32,);
    assert_enqueued!(&test, shop::pack, weight == 0.1, token == "hunter2");
    let both = 2;
    assert_enqueued!(test, 2 of shop::pack);
    assert_enqueued!(test, (both) of shop::pack, order == order());
    assert_enqueued!(test, 1 of shop::pack, r#type == "box");
    assert_enqueued!(test, 0 of shop::pack, r#type == "tin");
    assert_enqueued!(test, 0 of bill);
}

#[tokio::test]
async fn jobs_that_have_ended_are_there_as_long_as_they_are_kept() {
    let test = packing().await;
    test.drain().await.expect_all_succeeded();
    assert_enqueued!(test, 2 of shop::pack);
    assert!(test.enqueued(shop::task_pack()).iter().all(|packed| packed.job.state == State::Succeeded));
    test.advance(Duration::from_secs(60 * 60)).await;
    assert_enqueued!(test, 0 of shop::pack);
}

#[tokio::test]
async fn one_that_is_not_there_is_told_with_those_that_are_and_no_secret() {
    let test = packing().await;
    let told = refusal(|| assert_enqueued!(test, shop::pack, r#type == "tin", token == "hunter3"));
    let mut lines = told.lines();
    assert_eq!(
        lines.next(),
        Some("no job of task shop.pack with type == \"tin\" and token == ••• is stored; all its jobs, 2:")
    );
    let first = lines.next().expect("a line for each job");
    assert!(first.contains(", ready in queue shop: {"), "{first}");
    assert!(first.contains("\"type\":\"box\"") && first.contains("\"token\":\"•••\""), "{first}");
    assert!(!told.contains("hunter"), "{told}");
    assert_eq!(lines.count(), 1);
}

#[tokio::test]
async fn a_wrong_number_is_told_with_the_right_one() {
    let test = packing().await;
    let told = refusal(|| assert_enqueued!(test, 3 of shop::pack));
    assert!(
        told.starts_with("2 jobs of task shop.pack are stored, and there should be 3; all its jobs, 2:"),
        "{told}"
    );
    let told = refusal(|| assert_enqueued!(test, 0 of shop::pack, r#type == "bag"));
    assert!(
        told.starts_with("1 jobs of task shop.pack with type == \"bag\" are stored, and there should be 0;"),
        "{told}"
    );
    assert_eq!(
        refusal(|| assert_enqueued!(test, bill)),
        "no job of task bill is stored; it has no jobs at all"
    );
}

#[tokio::test]
async fn stored_jobs_are_listed_with_their_arguments_by_type() {
    let test = packing().await;
    shop::enqueue_pack(test.queue(), order(), "chest".repeat(1_000), 2.5, String::new())
        .priority(9)
        .await
        .expect("stored");
    let packed = test.enqueued(shop::task_pack());
    assert_eq!(packed.len(), 3);
    assert_eq!(packed[0].argument::<Order>("order"), order());
    assert_eq!(packed[2].argument::<String>("type").len(), 5_000, "also one that lies apart");
    assert_eq!((packed[0].job.priority, packed[2].job.priority), (3, 9));
    let shown = format!("{:?}", packed[2]);
    assert!(shown.len() < 1_300 && shown.contains("… (50"), "{shown}");
    let told = refusal(|| _ = packed[0].argument::<u32>("token"));
    assert_eq!(told, "argument token of task shop.pack is no u32");
    let told = refusal(|| _ = packed[0].argument::<u32>("tokens"));
    assert_eq!(told, "a job of task shop.pack has no argument tokens");
}
