//! wait: sleeps until a bell that the worker can use is rung, or until the alarm of one of its queues.

use std::sync::Arc;
use std::time::Duration;

use super::bells::Next;
use super::hub::Hub;
use crate::clock::Clock;
use crate::store::types::{Wait, Wake};

/// A keeper looks at the clock at least this often: an operator may step it.
const LONGEST_SLEEP: Duration = Duration::from_secs(10);

/// Waits until the worker should claim.
pub(super) async fn wait(hub: Arc<Hub>, clock: Clock, wait: Wait) -> Wake {
    let (id, told) = hub.bells().enter(wait);
    // Leaves when this future is dropped, too, so that what was handed to it goes to another.
    let place = Place { hub, id };
    loop {
        let now = clock.now();
        let next = place.hub.bells().next(id, now);
        match next {
            Next::Wake(wake) => return wake,
            Next::Sleep(None) => told.notified().await,
            Next::Sleep(Some(moment)) => {
                tokio::select! {
                    () = told.notified() => {}
                    () = clock.sleep_until(moment.min(now + LONGEST_SLEEP)) => {}
                }
            }
        }
    }
}

struct Place {
    hub: Arc<Hub>,
    id: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.hub.bells().leave(self.id);
    }
}
