//! SIGTERM and ctrl-c.

use crate::error::{Effect, Error, Result};

/// The signals that ask a process to end.
pub(super) struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    /// Takes the signals from now on.
    pub(super) fn new() -> Result<Self> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            Ok(Self {
                terminate: signal(SignalKind::terminate()).map_err(refused)?,
                interrupt: signal(SignalKind::interrupt()).map_err(refused)?,
            })
        }
        #[cfg(not(unix))]
        Ok(Self {})
    }

    /// Waits for the next of them.
    pub(super) async fn next(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
        #[cfg(not(unix))]
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(unix)]
fn refused(error: std::io::Error) -> Error {
    Error::StoreUnavailable {
        store: "the system".into(),
        effect: Effect::None,
        reason: "it gives no signals; use run_until(..) instead of run()".into(),
        source: Some(Box::new(error)),
    }
}
