//! A job that waits says why.

use std::sync::Arc;

use flexiq::{Cause, Context, Error, JobId, Origin, Scope};
use flexiq_tests::soon;
use tokio::sync::{Notify, mpsc};

use super::queue;

/// Says that a run has begun, and waits until the test lets it end.
#[derive(Clone)]
struct Stage {
    begun: mpsc::UnboundedSender<JobId>,
    end: Arc<Notify>,
}

#[flexiq::task(queue = "films", max_concurrent = 1)]
async fn cut_film(#[state] stage: Stage, #[context] context: Context) {
    stage.begun.send(context.job_id()).expect("the test listens");
    stage.end.notified().await;
}

#[tokio::test]
async fn a_job_behind_a_cap_names_who_holds_it_and_starts_when_that_ends() {
    let (queue, _hands) = queue().await;
    let (begun, mut runs) = mpsc::unbounded_channel();
    let stage = Stage { begun, end: Arc::default() };
    let first = enqueue_cut_film(&queue).await.expect("stored");
    let second = enqueue_cut_film(&queue).await.expect("stored");
    let told = second.explain().await.expect("explained");
    let has_no_worker =
        matches!(&told.causes[..], [Cause::NoWorker { total: 0, .. }, Cause::Behind { jobs: 1, .. }]);
    assert!(has_no_worker, "{told:?}");

    let builder = queue.worker().tasks([task_cut_film()]);
    let worker = builder.state(stage.clone()).start().await.expect("it starts");
    assert_eq!(soon("it runs", runs.recv()).await, Some(first.id()));
    let told = second.explain().await.expect("explained");
    let [Cause::Full { scope, max_concurrent: 1, origin: Origin::Declared, running: 1, holders }] =
        &told.causes[..]
    else {
        panic!("the cap alone keeps it waiting: {told:?}")
    };
    assert!(
        matches!(scope, Scope::Task(task) if task.as_str() == "cut_film") && holders[0].job == first.id()
    );
    assert!(told.to_string().contains("max_concurrent (declared) allows 1"), "{told}");

    stage.end.notify_one();
    assert_eq!(soon("it runs", runs.recv()).await, Some(second.id()));
    assert_eq!(second.explain().await.expect("explained").causes, []);
    stage.end.notify_one();
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn a_job_that_is_not_there_is_unknown() {
    let (queue, _hands) = queue().await;
    let id = JobId::new();
    let error = queue.explain(id).await.expect_err("there is none");
    assert!(matches!(error, Error::UnknownJob(unknown) if unknown == id), "{error:?}");
}
