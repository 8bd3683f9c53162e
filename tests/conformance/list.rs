//! list: pages of jobs, in the order of each state, with a bound for each page.

use flexiq::internals::{DeadReason, Due, Filter, NewJob, Page, Payload, Transition};
use flexiq::{JobId, State};
use flexiq_tests::listed;

use crate::harness::*;

fn all() -> Filter {
    Filter { limit: 1_000, ..Filter::default() }
}

fn id_of(number: u8) -> JobId {
    JobId::from_bytes([number; 16])
}

/// A job whose id is made of this number.
fn numbered(task: &str, number: u8) -> NewJob {
    NewJob { id: id_of(number), is_given: true, ..job(task) }
}

fn kill() -> Transition {
    Transition::Kill { reason: DeadReason::Never, error: None }
}

impl Bench {
    /// The ids of a list, read in pages of so many.
    async fn listed(&self, filter: Filter) -> Vec<JobId> {
        listed(&*self.store, filter).await.expect("answers").iter().map(|job| job.id).collect()
    }

    async fn page(&self, filter: Filter) -> Page {
        self.store.list(filter).await.expect("answers")
    }
}

for_every_store! {
    async fn a_job_of_any_id_is_listed(bench: Bench) {
        bench.enqueue_many("a", vec![numbered("send", 1)]).await;
        bench.enqueue_many("z", vec![numbered("send", 2)]).await;
        bench.enqueue(numbered("send", 0)).await;
        bench.enqueue(numbered("send", 255)).await;
        bench.claim(bench.living, &["send"], 1).await;
        assert_eq!(bench.listed(all()).await, [id_of(1), id_of(255), id_of(0), id_of(2)]);
    }

    async fn a_list_goes_through_queues_by_name_and_states_as_a_job_lives(bench: Bench) {
        bench.enqueue_many("b", vec![job("send")]).await;
        bench.enqueue_many("q", jobs("send", 5)).await;
        let held = bench.claim(bench.living, &["send"], 4).await;
        bench.finish(bench.living, held[0].lease, succeed()).await;
        bench.finish(bench.living, held[1].lease, kill()).await;
        bench.store.cancel(bench.enqueue(job("send")).await).await.expect("answers");
        bench.enqueue(NewJob { due: Due::In(secs(60)), ..job("send") }).await;
        bench.enqueue(NewJob { expires: Some(millis(1)), ..job("other") }).await;
        bench.pass(secs(1)).await;
        for limit in [1, 2, 3, 1_000] {
            let jobs = listed(&*bench.store, Filter { limit, ..all() }).await.expect("answers");
            let seen: Vec<_> = jobs.iter().map(|job| (job.queue.as_str(), job.state.to_string())).collect();
            let seen: Vec<_> = seen.iter().map(|(queue, state)| (*queue, state.as_str())).collect();
            assert_eq!(seen, [
                ("b", "ready"), ("q", "scheduled"), ("q", "ready"), ("q", "running"), ("q", "running"),
                ("q", "succeeded"), ("q", "dead"), ("q", "cancelled"), ("q", "expired"),
            ]);
        }
    }

    async fn scheduled_jobs_are_listed_by_due_time_and_id(bench: Bench) {
        for (number, seconds) in [(1, 90), (4, 30), (3, 60), (2, 60), (5, 60)] {
            let due = Due::In(secs(seconds));
            bench.enqueue(NewJob { due, ..numbered("send", number) }).await;
        }
        for limit in 1..=6 {
            let ids = bench.listed(Filter { limit, ..all() }).await;
            assert_eq!(ids, [4, 2, 3, 5, 1].map(id_of));
        }
    }

    async fn ready_jobs_are_listed_by_task_and_partition_as_they_will_start(bench: Bench) {
        bench.enqueue(NewJob { partition: "z".into(), ..numbered("send", 1) }).await;
        bench.enqueue(NewJob { partition: "a".into(), ..numbered("send", 2) }).await;
        bench.enqueue(numbered("send", 3)).await;
        bench.hands.advance(secs(1));
        bench.enqueue(NewJob { priority: 5, ..numbered("send", 4) }).await;
        bench.enqueue(numbered("send", 5)).await;
        bench.enqueue(NewJob { priority: -100, ..numbered("send.more", 6) }).await;
        bench.enqueue(numbered("fetch", 7)).await;
        for limit in 1..=8 {
            let ids = bench.listed(Filter { limit, ..all() }).await;
            assert_eq!(ids, [7, 4, 3, 5, 2, 1, 6].map(id_of));
            let ids = bench.listed(Filter { limit, task: Some(name("send")), ..all() }).await;
            assert_eq!(ids, [4, 3, 5, 2, 1].map(id_of));
        }
    }

    async fn running_jobs_are_listed_by_the_end_of_their_lease(bench: Bench) {
        let mut leases = Vec::new();
        for number in [3, 1, 2] {
            bench.enqueue(numbered("send", number)).await;
            leases.push(bench.claim(bench.living, &["send"], 1).await[0].lease);
            bench.hands.advance(secs(1));
        }
        for limit in 1..=4 {
            assert_eq!(bench.listed(Filter { limit, ..all() }).await, [3, 1, 2].map(id_of));
        }
        bench.beat(bench.living, &leases[..1]).await;
        assert_eq!(bench.listed(all()).await, [1, 2, 3].map(id_of));
    }

    async fn of_those_that_have_ended_the_newest_are_listed_first(bench: Bench) {
        for number in [2, 3, 1, 4] {
            bench.enqueue(numbered("send", number)).await;
            let held = bench.claim(bench.living, &["send"], 1).await;
            bench.finish(bench.living, held[0].lease, kill()).await;
            if number != 3 {
                bench.hands.advance(secs(1));
            }
        }
        for limit in 1..=5 {
            assert_eq!(bench.listed(Filter { limit, ..all() }).await, [4, 3, 1, 2].map(id_of));
        }
    }

    async fn a_list_is_filtered_by_queue_task_and_state(bench: Bench) {
        let sends: Vec<_> = bench.enqueue_many("q", jobs("send", 3)).await.iter().map(|one| one.id).collect();
        let other = bench.enqueue_many("other", vec![job("fetch")]).await[0].id;
        bench.store.cancel(sends[2]).await.expect("answers");
        assert_eq!(bench.listed(all()).await.len(), 4);
        assert_eq!(bench.listed(Filter { queue: Some(name("other")), ..all() }).await, [other]);
        assert_eq!(bench.listed(Filter { queue: Some(name("unknown")), ..all() }).await, []);
        assert_eq!(bench.listed(Filter { task: Some(name("fetch")), ..all() }).await, [other]);
        assert_eq!(bench.listed(Filter { state: Some(State::Cancelled), ..all() }).await, [sends[2]]);
        assert_eq!(bench.listed(Filter { state: Some(State::Ready), queue: Some(name("q")), ..all() }).await, sends[..2]);
    }

    async fn a_state_is_listed_whatever_its_reason(bench: Bench) {
        for reason in [DeadReason::Never, DeadReason::Failures] {
            bench.enqueue(job("send")).await;
            let held = bench.claim(bench.living, &["send"], 1).await;
            bench.finish(bench.living, held[0].lease, Transition::Kill { reason, error: None }).await;
        }
        let dead = Filter { state: Some(State::Dead(DeadReason::Losses)), ..all() };
        assert_eq!(bench.listed(dead).await.len(), 2);
    }

    async fn a_page_begins_where_the_one_before_ended_although_that_job_has_gone(bench: Bench) {
        for number in 1..=6 {
            bench.enqueue(NewJob { due: Due::In(secs(60)), ..numbered("send", number) }).await;
        }
        let first = bench.page(Filter { limit: 3, ..all() }).await;
        bench.store.cancel(id_of(3)).await.expect("answers");
        let scheduled = Some(first.jobs[0].state);
        let next = bench.listed(Filter { state: scheduled, after: first.reached, ..all() }).await;
        assert_eq!(next, [4, 5, 6].map(id_of));
    }

    async fn a_page_looks_at_a_thousand_jobs_at_most(bench: Bench) {
        let many = |due| (0..1_500).map(|_| NewJob { due, ..job("other") }).collect::<Vec<_>>();
        bench.enqueue_many("q", many(Due::In(secs(60)))).await;
        let wanted = bench.enqueue(NewJob { due: Due::In(secs(61)), ..job("send") }).await;
        let send = Filter { task: Some(name("send")), ..all() };
        let first = bench.page(send.clone()).await;
        assert!(first.jobs.is_empty() && first.reached.is_some(), "{first:?}");
        let second = bench.page(Filter { after: first.reached, ..send.clone() }).await;
        assert_eq!(second.jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [wanted]);
        bench.enqueue_many("q", many(Due::NOW)).await;
        bench.claim(bench.living, &["other"], 1_000).await;
        let running = Filter { state: Some(State::Running), ..send };
        assert_eq!(bench.listed(running).await, []);
        assert_eq!(bench.page(Filter { limit: 5_000, ..all() }).await.jobs.len(), 1_000);
    }

    async fn large_arguments_are_listed_in_pages_of_their_own(bench: Bench) {
        let payload = Payload { codec: 0, bytes: vec![b'7'; 3 << 20] };
        for number in 1..=4 {
            bench.enqueue(NewJob { payload: payload.clone(), ..numbered("send", number) }).await;
        }
        assert_eq!(bench.listed(all()).await, [1, 2, 3, 4].map(id_of));
    }

    async fn a_place_that_no_page_has_reached_is_as_good_as_another(bench: Bench) {
        bench.enqueue_many("q", jobs("send", 2)).await;
        let end = bench.page(Filter { limit: 1, ..all() }).await.reached.expect("one is left");
        let before = Filter { queue: None, after: Some(flexiq::internals::Reached { queue: name("a"), ..end.clone() }), ..all() };
        assert_eq!(bench.listed(before).await.len(), 2);
        let behind = Filter { after: Some(flexiq::internals::Reached { queue: name("z"), ..end }), ..all() };
        assert_eq!(bench.listed(behind).await, []);
    }
}
