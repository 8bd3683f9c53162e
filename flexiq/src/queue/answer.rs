//! What every call on a queue gives back: awaited in async code, or blocked for in plain code.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::sync::mpsc;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::error::Result;

/// The answer to a call, on its way: `.await` it, or in plain code `.blocking()`.
///
/// Nothing happens before one of the two.
#[must_use = "nothing happens until it is awaited, or `.blocking()` is called"]
pub struct Answer<T> {
    future: Pin<Box<dyn Future<Output = Result<T>> + Send>>,
}

impl<T> Answer<T> {
    pub(crate) fn new(future: impl Future<Output = Result<T>> + Send + 'static) -> Self {
        Self { future: Box::pin(future) }
    }
}

impl<T: Send + 'static> Answer<T> {
    /// Waits for the answer on this thread: for code that is not `async`.
    ///
    /// The call itself runs on a thread of its own, so this works everywhere; in `async` code it would hold up the
    /// runtime, and `.await` is the way.
    ///
    /// # Errors
    ///
    /// Those of the call.
    ///
    /// ```
    /// let queue = flexiq::Queue::open("sqlite::memory:").blocking()?;
    /// assert!(queue.counts().blocking()?.is_empty());
    /// # Ok::<(), flexiq::Error>(())
    /// ```
    pub fn blocking(self) -> Result<T> {
        let (sender, answer) = mpsc::sync_channel(1);
        background().spawn(async move {
            // The caller waits below and cannot be gone.
            let _ = sender.send(self.await);
        });
        answer.recv().expect("the background runtime runs every call to its end")
    }
}

impl<T> Future for Answer<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.future.as_mut().poll(context)
    }
}

impl<T> fmt::Debug for Answer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answer")
    }
}

/// Waits in real time, also on a runtime whose time a test has stopped.
pub(crate) async fn real_pause(time: Duration) {
    // Dropping the set ends the sleep.
    let mut sleep = tokio::task::JoinSet::new();
    sleep.spawn_on(async move { tokio::time::sleep(time).await }, background());
    sleep.join_next().await;
}

/// A runtime on a thread of its own, for the calls of plain code; started with the first of them.
fn background() -> &'static Handle {
    static BACKGROUND: OnceLock<Handle> = OnceLock::new();
    BACKGROUND.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("the system gives a thread its timer and its poller");
        let handle = runtime.handle().clone();
        thread::Builder::new()
            .name("flexiq-blocking".into())
            .spawn(move || runtime.block_on(std::future::pending::<()>()))
            .expect("the system gives a thread");
        handle
    })
}
