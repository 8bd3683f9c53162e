//! The thread that only reads a file: questions of people never wait behind the work, nor the work behind them.

use std::sync::{Arc, mpsc};
use std::thread;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::failure::explain;
use super::ticket::{Asked, Ticket};
use crate::error::{Effect, Result};

type Question = Box<dyn FnOnce(&Connection) + Send>;

/// The handle on the reader thread, which ends when the handle is gone.
#[derive(Debug)]
pub(super) struct Reader {
    questions: mpsc::Sender<Question>,
    place: Arc<str>,
}

impl Reader {
    pub(super) fn start(connection: Connection, place: Arc<str>) -> std::io::Result<Self> {
        let (questions, asked) = mpsc::channel::<Question>();
        thread::Builder::new().name("flexiq-sqlite-read".into()).spawn(move || {
            for question in asked {
                question(&connection);
            }
        })?;
        Ok(Self { questions, place })
    }

    /// Hands a question to the thread.
    pub(super) fn ask<T, F>(&self, read: F) -> Asked<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let ticket = Arc::new(Ticket::default());
        let (reply, answer) = oneshot::channel::<Result<T>>();
        let question: Question = Box::new({
            let (ticket, place) = (ticket.clone(), self.place.clone());
            move |connection| {
                if ticket.begin() {
                    // One that has given up has dropped its end.
                    let _ =
                        reply.send(read(connection).map_err(|error| explain(error, &place, Effect::None)));
                }
            }
        });
        // The thread lives as long as this handle.
        let _ = self.questions.send(question);
        Asked { ticket, answer }
    }
}
