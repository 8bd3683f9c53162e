//! tell and story: what runs tell of themselves, and what is kept of how a job went.

use super::wire::{Packed, Parts};
use super::{Shared, scripts};
use crate::error::Result;
use crate::job::{JobId, Story};
use crate::store::story::{read_story, write_notes};
use crate::store::tell::Tell;

pub(super) async fn tell(store: &Shared, tell: Tell) -> Result<()> {
    let mut args = vec![tell.worker.as_bytes().to_vec()];
    for (lease, notes) in &tell.runs {
        args.push(Packed::default().bytes(lease.job.as_bytes()).word(lease.run).0);
        args.push(write_notes(lease.run, notes));
    }
    store.run(&scripts::TELL, &tell.queue, args).await.map(drop)
}

pub(super) async fn story(store: &Shared, id: JobId) -> Result<Option<Story>> {
    for queue in store.queues().await? {
        let answer = store.run(&scripts::STORY, &queue, vec![id.as_bytes().to_vec()]).await?;
        let mut parts = Parts::of(answer, store.place());
        if !parts.is_empty() {
            return Ok(Some(read_story(&parts.bytes()?, &parts.bytes()?)));
        }
    }
    Ok(None)
}
