//! keep_sample: the newest sample is kept and the one before, and of several writers one.

use flexiq::internals::{StoredSample, Timestamp};

use crate::harness::*;

impl Bench {
    async fn keep(&self, after: Option<Timestamp>, text: &str) -> bool {
        self.store.keep_sample(after, text.into()).await.expect("the store answers")
    }

    async fn samples(&self) -> Vec<(Timestamp, String)> {
        let samples = self.store.stats().await.expect("the store answers").samples;
        samples.into_iter().map(|StoredSample { at, text }| (at, text)).collect()
    }
}

for_every_store! {
    async fn the_newest_sample_is_kept_and_the_one_before(bench: Bench) {
        assert_eq!(bench.samples().await, []);
        let (mut after, mut kept) = (None, Vec::new());
        for text in ["one", "two", "three"] {
            bench.hands.advance(secs(1));
            assert!(bench.keep(after, text).await);
            kept.push((START + secs(kept.len() as u64 + 1), text.to_owned()));
            after = kept.last().map(|(at, _)| *at);
            let newest = kept.len().saturating_sub(2);
            assert_eq!(bench.samples().await, kept[newest..]);
        }
    }

    async fn of_those_who_have_seen_the_same_one_keeps_its_sample(bench: Bench) {
        assert!(bench.keep(None, "first").await);
        assert!(!bench.keep(None, "late").await);
        bench.hands.advance(secs(300));
        assert!(!bench.keep(Some(START + secs(1)), "of another").await);
        assert!(bench.keep(Some(START), "second").await);
        assert!(!bench.keep(Some(START), "late").await);
        let texts: Vec<_> = bench.samples().await.into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["first", "second"]);
    }
}
