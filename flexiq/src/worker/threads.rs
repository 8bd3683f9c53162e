//! Threads for plain functions: started as they are needed, used again, and never waited for at the end of the process.
//!
//! tokio's blocking pool is not used, because it holds the process until every function on it has returned. The pump
//! bounds how many calls there are at once; a thread that stays idle for a while ends.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a thread waits for its next call before it ends.
const IDLE: Duration = Duration::from_secs(10);

type Call = Box<dyn FnOnce() + Send>;

/// Threads for plain functions.
#[derive(Clone, Default)]
pub(super) struct Threads {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    calls: VecDeque<Call>,
    idle: usize,
}

impl Threads {
    /// Runs `call` on a thread of its own. It must not panic.
    ///
    /// # Errors
    ///
    /// The call itself, if the system gives no more threads.
    pub(super) fn run(&self, call: Call) -> Result<(), Call> {
        let mut state = self.shared.lock();
        state.calls.push_back(call);
        if state.idle >= state.calls.len() {
            self.shared.wake.notify_one();
            return Ok(());
        }
        drop(state);
        let shared = self.shared.clone();
        match thread::Builder::new().name("flexiq-plain".into()).spawn(move || shared.serve()) {
            Ok(_) => Ok(()),
            Err(_) => match self.shared.lock().calls.pop_back() {
                Some(call) => Err(call),
                // An idle thread took it meanwhile.
                None => Ok(()),
            },
        }
    }
}

impl Shared {
    fn serve(&self) {
        while let Some(call) = self.next() {
            call();
        }
    }

    fn next(&self) -> Option<Call> {
        let mut state = self.lock();
        if let Some(call) = state.calls.pop_front() {
            return Some(call);
        }
        state.idle += 1;
        let (mut state, _) = self
            .wake
            .wait_timeout_while(state, IDLE, |state| state.calls.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        state.idle -= 1;
        state.calls.pop_front()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No call runs while the lock is held, so a poisoned lock hides nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Threads")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn calls_that_wait_for_each_other_all_run_at_once() {
        let threads = Threads::default();
        let barrier = Arc::new(Barrier::new(8));
        let (sender, done) = mpsc::channel();
        for _ in 0..8 {
            let (barrier, sender) = (barrier.clone(), sender.clone());
            let call: Call = Box::new(move || {
                barrier.wait();
                sender.send(()).expect("the test waits");
            });
            assert!(threads.run(call).is_ok());
        }
        for _ in 0..8 {
            done.recv_timeout(Duration::from_secs(30)).expect("all eight run");
        }
    }

    #[test]
    fn a_thread_that_has_returned_is_used_again() {
        let threads = Threads::default();
        let (sender, ids) = mpsc::channel();
        let mut seen = Vec::new();
        for _ in 0..3 {
            let sender = sender.clone();
            let call: Call = Box::new(move || sender.send(thread::current().id()).expect("the test waits"));
            assert!(threads.run(call).is_ok());
            seen.push(ids.recv_timeout(Duration::from_secs(30)).expect("it runs"));
            while threads.shared.lock().idle == 0 {
                thread::yield_now();
            }
        }
        assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "{seen:?}");
    }
}
