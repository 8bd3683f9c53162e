//! A task says how it stands: its knobs, who declares them, who holds its gates, who takes it.

use std::sync::Arc;
use std::time::Duration;

use flexiq::{Cause, Error, JobHandle, KnobValue, Origin, Queue, Scope, TaskExplanation, Worker};
use flexiq_tests::soon;
use tokio::sync::{Notify, mpsc};

use super::queue;

#[derive(Clone)]
struct Stage {
    begun: mpsc::UnboundedSender<()>,
    end: Arc<Notify>,
}

#[flexiq::task(queue = "studio", max_concurrent = 1, max_in_flight_per_task = 4, rate_limit = "100/m")]
async fn record_song(#[state] stage: Stage) {
    stage.begun.send(()).expect("the test listens");
    stage.end.notified().await;
}

#[flexiq::task(queue = "studio")]
async fn mix_song() {}

fn stage() -> (Stage, mpsc::UnboundedReceiver<()>) {
    let (begun, runs) = mpsc::unbounded_channel();
    (Stage { begun, end: Arc::default() }, runs)
}

async fn start(queue: &Queue, stage: &Stage) -> Worker {
    let builder = queue.worker().tasks([task_record_song(), task_mix_song()]).state(stage.clone());
    builder.start().await.expect("it starts")
}

async fn enqueue(queue: &Queue, jobs: usize) -> Vec<JobHandle<()>> {
    let mut handles = Vec::new();
    for _ in 0..jobs {
        handles.push(enqueue_record_song(queue).await.expect("stored"));
    }
    handles
}

async fn told(queue: &Queue) -> TaskExplanation {
    queue.explain_task("record_song").await.expect("explained")
}

#[tokio::test]
async fn a_task_tells_its_knobs_who_declares_them_and_who_holds_its_gates() {
    let (queue, clock) = queue().await;
    let (stage, mut runs) = stage();
    let first = start(&queue, &stage).await;
    let second = start(&queue, &stage).await;
    let youngest = queue.stats().await.expect("answered").workers[1].clone();
    enqueue(&queue, 3).await;
    soon("one runs", runs.recv()).await;
    clock.advance(Duration::from_secs(5));
    queue.set_task_rate_limit("record_song", "50/m").await.expect("set");
    queue.set_queue_max_pending("studio", 9).await.expect("set");

    let how = told(&queue).await;
    assert_eq!((&*how.task, how.home.as_deref(), how.partitions_apart), ("record_song", Some("studio"), 0));
    let knobs: Vec<_> =
        how.knobs.iter().map(|knob| (&knob.value, knob.origin, knob.above.as_ref())).collect();
    let rate = |text: &str| KnobValue::Rates(vec![text.parse().expect("a rate")]);
    use KnobValue::{MaxConcurrent, MaxInFlight, MaxPending};
    let expected = [
        (&MaxInFlight(4), Origin::Declared, None),
        (&MaxConcurrent(1), Origin::Declared, None),
        (&rate("50/m"), Origin::Set, Some(&rate("100/m"))),
        (&MaxPending(9), Origin::Set, None),
    ];
    assert_eq!(knobs, expected);
    for knob in &how.knobs[..3] {
        let by = knob.declared_by.as_ref().expect("two live workers declare it");
        assert_eq!((by.worker, &by.label), (youngest.worker, &youngest.label), "the youngest word holds");
    }
    assert!(how.knobs[3].declared_by.is_none(), "no builder declares it");

    let [studio] = &how.queues[..] else { panic!("it lies in one queue: {how:?}") };
    let counts = &studio.stats.counts;
    assert_eq!((counts.ready, counts.running, studio.stats.startable, studio.takers), (2, 1, 0, 2));
    let [Cause::Full { scope: Scope::Task(_), max_concurrent: 1, running: 1, holders, .. }] =
        &studio.causes[..]
    else {
        panic!("its cap alone is full: {how:?}")
    };
    assert_eq!(holders.len(), 1);
    let text = how.to_string();
    for line in [
        "Task record_song is at home in queue studio.".to_owned(),
        format!("- Task record_song: max_concurrent (declared) allows 1 at once, by worker {} (", youngest.worker),
        "- Task record_song: set_task_rate_limit (set at runtime) allows 50/m, above 100/m of rate_limit (declared)".into(),
        "- Queue studio: set_queue_max_pending (set at runtime) allows 9 pending.".into(),
        "In queue studio: 2 ready, the oldest since 5s; 0 startable; 0 scheduled; 1 running, the oldest since 5s.".into(),
        "- Task record_song is full: 1 job runs and max_concurrent (declared) allows 1. Running: job ".into(),
        "- 2 live workers take it: ".into(),
    ] {
        assert!(text.contains(&line), "{line}\nis not in\n{text}");
    }
    queue.pause_task("record_song").await.expect("paused");
    stage.end.notify_one();
    soon("it stops", first.shutdown()).await.expect("it stops");
    soon("it stops", second.shutdown()).await.expect("it stops");
}

#[tokio::test]
async fn a_task_that_nobody_takes_says_who_is_alive_and_that_the_last_word_stands() {
    let (queue, _clock) = queue().await;
    let worker = start(&queue, &stage().0).await;
    soon("it stops", worker.shutdown()).await.expect("it stops");
    enqueue(&queue, 1).await;
    let how = told(&queue).await;
    let [studio] = &how.queues[..] else { panic!("it lies in one queue: {how:?}") };
    assert!(matches!(&studio.causes[..], [Cause::NoWorker { total: 0, .. }]), "{how:?}");
    assert!(studio.stats.is_stranded && studio.taken_by.is_empty());
    assert!(how.knobs.iter().all(|knob| knob.declared_by.is_none()), "{how:?}");

    let other = queue.worker().tasks([task_mix_song()]).start().await.expect("it starts");
    let how = told(&queue).await;
    let [Cause::NoWorker { alive, total: 1 }] = &how.queues[0].causes[..] else { panic!("{how:?}") };
    assert_eq!((alive[0].links_task, alive[0].serves_queue), (false, true));
    assert!(how.to_string().contains("(does not link the task)"), "{how}");
    soon("it stops", other.shutdown()).await.expect("it stops");
}

#[tokio::test]
async fn a_paused_task_without_any_job_says_so() {
    let (queue, _clock) = queue().await;
    let worker = start(&queue, &stage().0).await;
    queue.pause_task("mix_song").await.expect("paused");
    let how = queue.explain_task("mix_song").await.expect("explained");
    let [studio] = &how.queues[..] else { panic!("its home: {how:?}") };
    assert!(matches!(&studio.causes[..], [Cause::Paused { .. }]), "{how:?}");
    assert!(how.to_string().contains("- Task mix_song is paused, until resume_task."), "{how}");
    soon("it stops", worker.shutdown()).await.expect("it stops");
}

#[tokio::test]
async fn an_unknown_task_is_refused_with_the_nearest() {
    let (queue, _clock) = queue().await;
    let error = queue.explain_task("record_sonk").await.expect_err("there is none");
    let Error::Unknown { what: "task", name, nearest } = &error else { panic!("{error:?}") };
    assert_eq!((name.as_str(), nearest.as_deref()), ("record_sonk", Some("record_song")));
    // One that is linked here is known, if to nobody else yet.
    assert_eq!(told(&queue).await.home, None);
}
