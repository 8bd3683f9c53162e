//! wait, called and ended: waiting for the server's messages.

use std::sync::Arc;
use std::time::Duration;

use super::hub::{Next, Stray};
use super::read::{self, Ended};
use super::wire::{Packed, Parts};
use super::{Shared, keys, scripts};
use crate::error::{Error, Result};
use crate::job::JobId;
use crate::name::Name;
use crate::store::types::{JobKey, Stored, Wait, Wake, WorkerId};

/// A sleeper makes sure this often that the server is still there, and its keeper that nobody stepped the clock.
const LONGEST_SLEEP: Duration = Duration::from_secs(10);

/// Waits until the worker should claim.
pub(super) async fn wait(store: Arc<Shared>, wait: Wait) -> Result<Wake> {
    let number = store.next_wait();
    let told = store.hub.enter(number);
    // Leaves when this future is dropped, too, so that what was handed to it goes to another.
    let mut place = Place { store: store.clone(), number, worker: wait.worker, entered: Vec::new() };
    for (queue, tasks) in &wait.queues {
        place.entered.push(queue.clone());
        let mut args = place.args();
        args.extend(tasks.iter().map(|task| task.as_bytes().to_vec()));
        let answer = store.run(&scripts::ENTER, queue, args).await?;
        // One bell, even if more are rung: its claim may use up the room that another would need.
        if Parts::of(answer, store.place()).number()? > 0 {
            return Ok(place.take(queue.clone()));
        }
    }
    loop {
        let alarm = match store.hub.next(number) {
            Next::Bell(queue) => return Ok(place.take(queue)),
            Next::Lost => {
                let queues = wait.queues.iter().map(|(queue, _)| queue.clone()).collect();
                return Ok(Wake { queues });
            }
            Next::Sleep(alarm) => alarm,
        };
        let (keeps, alarm) = alarm.unzip();
        let ring = async {
            match alarm {
                Some(alarm) => alarm.ring(&store.clock).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = told.notified() => continue,
            () = ring => {}
            () = nap(&store) => {}
        }
        match keeps {
            Some(queue) => {
                store.hub.silence(number, &queue);
                let answer = store.run(&scripts::ALARM, &queue, place.args()).await?;
                if Parts::of(answer, store.place()).number()? > 0 {
                    return Ok(place.take(queue));
                }
            }
            None => drop(store.call(&redis::cmd("PING")).await?),
        }
    }
}

/// The longest sleep; where a test moves the clock there is nothing to make sure of.
async fn nap(store: &Shared) {
    match store.clock.manual_now() {
        Some(_) => std::future::pending().await,
        None => store.clock.sleep(LONGEST_SLEEP).await,
    }
}

/// A place in the lines of these queues.
struct Place {
    store: Arc<Shared>,
    number: u64,
    worker: WorkerId,
    entered: Vec<Name>,
}

impl Place {
    fn args(&self) -> Vec<Vec<u8>> {
        leave_args(&self.store, self.number, self.worker)
    }

    /// What this queue handed over is taken.
    fn take(&mut self, queue: Name) -> Wake {
        self.entered.retain(|entered| *entered != queue);
        Wake { queues: vec![queue] }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.store.hub.leave(self.number);
        for queue in self.entered.drain(..) {
            leave(&self.store, Stray { number: self.number, worker: self.worker, queue });
        }
    }
}

/// Leaves the line of a queue, giving back a bell that was handed over and not taken. If the server is away, a beat
/// rings for what is startable.
pub(super) fn leave(store: &Arc<Shared>, Stray { number, worker, queue }: Stray) {
    let leaver = store.clone();
    store.leaving.send_modify(|lines| *lines += 1);
    store.spawn(async move {
        let args = leave_args(&leaver, number, worker);
        let _ = leaver.run(&scripts::LEAVE, &queue, args).await;
        leaver.leaving.send_modify(|lines| *lines -= 1);
    });
}

fn leave_args(store: &Shared, number: u64, worker: WorkerId) -> Vec<Vec<u8>> {
    let number = Packed::default().moment(number as i64).0;
    vec![worker.as_bytes().to_vec(), store.handle.to_vec(), number]
}

/// Waits until one of the worker's jobs was cancelled and no beat has told it. A store that is away is waited for.
pub(super) async fn called(store: &Shared, worker: WorkerId) -> Result<()> {
    // Listen first, then look: a call in between is heard. It is asked again after every beat, so it looks but once.
    let (calls, has_looked) = store.hub.listen(worker);
    if !has_looked {
        loop {
            match unless_away(is_called(store, worker).await)? {
                Some(true) => return Ok(()),
                Some(false) => break,
                None => {}
            }
        }
        store.hub.looked(worker);
    }
    calls.notified().await;
    Ok(())
}

async fn is_called(store: &Shared, worker: WorkerId) -> Result<bool> {
    for queue in store.queues().await? {
        let key = keys::one_of_queue(store.prefix(), &queue, "called");
        let answer = store.call(redis::cmd("SMEMBERS").arg(key)).await?;
        let mut members = Parts::of(answer, store.place());
        while !members.is_empty() {
            if members.bytes()?.starts_with(worker.as_bytes()) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Nothing if the store is away: ask again. Meanwhile the connection's pauses hold for whoever asks.
fn unless_away<T>(answer: Result<T>) -> Result<Option<T>> {
    match answer {
        Err(Error::StoreUnavailable { .. }) => Ok(None),
        answer => answer.map(Some),
    }
}

/// Waits until a job has ended. A store that is away is waited for, however long that takes.
pub(super) async fn ended(store: &Shared, key: JobKey) -> Result<Option<Stored>> {
    // Join first, then look: an end in between is told.
    let told = store.hub.await_end(key.id);
    let _waits = AwaitsEnd { store, job: key.id };
    loop {
        let mut told = std::pin::pin!(told.notified());
        told.as_mut().enable();
        match unless_away(read::ended(store, &key).await)? {
            Some(Ended::NotThere) => return Ok(None),
            Some(Ended::So(stored)) => return Ok(Some(stored)),
            Some(Ended::Later) => told.await,
            None => {}
        }
    }
}

struct AwaitsEnd<'a> {
    store: &'a Shared,
    job: JobId,
}

impl Drop for AwaitsEnd<'_> {
    fn drop(&mut self) {
        self.store.hub.forget_end(self.job);
    }
}
