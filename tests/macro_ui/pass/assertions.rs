#![deny(warnings)]

use flexiq::testing::{TestQueue, assert_enqueued};

pub mod reports {
    #[flexiq::task]
    pub async fn build(_month: String, r#final: bool) {
        assert!(r#final);
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let test = TestQueue::builder().await;
    reports::enqueue_build(test.queue(), "2026-10".into(), true).await.unwrap();
    assert_enqueued!(test, reports::build);
    assert_enqueued!(&test, 1 of crate::reports::build, month == "2026-10".to_owned(), r#final == true,);
    assert_enqueued!(test, (1 - 1) of self::reports::build, r#final == false);
}
