//! room: producers wait until a queue, or a partition of it, takes their jobs. Their lines are in the store, and the script
//! that makes room tells those whose turn it is.

use std::sync::Arc;

use super::{Shared, scripts};
use crate::name::Name;
use crate::store::LONGEST_STAND;
use crate::store::types::ProducerId;

/// Waits until it is worth while to enqueue once more.
pub(super) async fn room(store: &Shared, producer: ProducerId) {
    let told = store.hub.await_room(producer);
    tokio::select! {
        () = told.notified() => {}
        () = store.clock.sleep(LONGEST_STAND) => {}
    }
}

/// Leaves the line, unless its jobs are stored. If the server is away, the place is given to others when nobody comes again
/// for it.
pub(super) fn leave_line(store: &Arc<Shared>, queue: &Name, producer: ProducerId) {
    if store.hub.forget_room(producer) {
        leave(store, queue, producer);
    }
}

/// Takes a producer out of the lines of a queue, in the background.
pub(super) fn leave(store: &Arc<Shared>, queue: &Name, producer: ProducerId) {
    let (leaver, queue) = (store.clone(), queue.clone());
    store.leaving.send_modify(|lines| *lines += 1);
    store.spawn(async move {
        let _ = leaver.run(&scripts::LEAVE_LINE, &queue, vec![producer.as_bytes().to_vec()]).await;
        leaver.leaving.send_modify(|lines| *lines -= 1);
    });
}
