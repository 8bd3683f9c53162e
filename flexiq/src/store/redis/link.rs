//! Calls to the server: each is sent until it is answered, or until its time is over.
//!
//! Every step may be sent again, so a connection that breaks meanwhile, or a server that starts anew, costs a caller time
//! and nothing else.

use std::time::Duration;

use redis::{Cmd, RedisError, Value};

use super::connection::{Connection, Open, Told};
use super::failure::{Verdict, explain, judge, unavailable};
use super::options::RedisOptions;
use super::scripts::Script;
use crate::error::{Effect, Error, Result};

/// The way to the server.
pub(super) struct Link {
    connection: Connection,
    pub(super) place: String,
    pub(super) timeout: Duration,
}

impl Link {
    /// A link that connects with its first call.
    pub(super) fn new(options: &RedisOptions, channels: Vec<Vec<u8>>, told: Told) -> Result<Self> {
        let connection = Connection::new(options, channels, told)?;
        Ok(Self { connection, place: options.place(), timeout: options.timeout })
    }

    /// Runs a script, and gives up after `within`.
    pub(super) async fn run(
        &self,
        script: &Script,
        keys: &[String],
        args: &[Vec<u8>],
        within: Duration,
    ) -> Result<Value> {
        match self.send(&command("EVALSHA", &script.hash, keys, args), within).await {
            Err(Unanswered { met: Some(error), .. }) if error.code() == Some("NOSCRIPT") => {
                self.send(&command("EVAL", &script.code, keys, args), within).await
            }
            answer => answer,
        }
        .map_err(|unanswered| self.explain(unanswered, within))
    }

    /// Sends one command.
    pub(super) async fn call(&self, command: &Cmd) -> Result<Value> {
        let answer = self.send(command, self.timeout).await;
        answer.map_err(|unanswered| self.explain(unanswered, self.timeout))
    }

    /// Does something in the background, on the link's own thread.
    pub(super) fn spawn(&self, step: impl Future<Output = ()> + Send + 'static) {
        self.connection.spawn(step);
    }

    async fn send(&self, command: &Cmd, within: Duration) -> std::result::Result<Value, Unanswered> {
        let mut sending = Sending::default();
        match tokio::time::timeout(within, sending.run(command, &self.connection)).await {
            Ok(Some(answer)) => return Ok(answer),
            Ok(None) => {}
            Err(_) => {
                // Who does not answer in time may never again: the next call finds out with another connection.
                if let Some(open) = sending.asked.take() {
                    self.connection.forget(&open);
                    sending.unanswered.effect = Effect::Unknown;
                }
            }
        }
        Err(sending.unanswered)
    }

    fn explain(&self, unanswered: Unanswered, within: Duration) -> Error {
        let Unanswered { met, effect } = unanswered;
        let Some(error) = met else {
            return unavailable(&self.place, effect, &format!("no answer within {within:?}"), None);
        };
        match (explain(error, &self.place, effect), effect) {
            // It refused now; what became of the time before is not known.
            (Error::StoreRefused { store, reason, source }, Effect::Unknown) => {
                Error::StoreUnavailable { store, effect, reason, source }
            }
            (error, _) => error,
        }
    }
}

/// A call that was not answered well.
struct Unanswered {
    /// What went wrong last; nothing if there was only silence.
    met: Option<RedisError>,
    /// Whether it may have been carried out nevertheless.
    effect: Effect,
}

/// A call that is under way.
struct Sending {
    /// Where its answer is awaited.
    asked: Option<Open>,
    unanswered: Unanswered,
}

impl Default for Sending {
    fn default() -> Self {
        Self { asked: None, unanswered: Unanswered { met: None, effect: Effect::None } }
    }
}

impl Sending {
    /// Sends a command until it is answered; `None` if it is of no use to go on.
    async fn run(&mut self, command: &Cmd, connection: &Connection) -> Option<Value> {
        loop {
            let open = match connection.get().await {
                Ok(open) => open,
                Err(error) => {
                    let verdict = judge(&error);
                    self.unanswered.met = Some(error);
                    // A server that has never answered is more likely a wrong address than one that will be back.
                    if verdict.is_final() || !connection.is_proven() {
                        return None;
                    }
                    continue;
                }
            };
            self.asked = Some(open.clone());
            let answer = open.send(command).await;
            self.asked = None;
            let error = match answer {
                Ok(Value::ServerError(error)) => error.into(),
                Ok(answer) => {
                    connection.answered();
                    return Some(answer);
                }
                Err(error) => error,
            };
            let verdict = judge(&error);
            self.unanswered.met = Some(error);
            if verdict != Verdict::Refused {
                connection.forget(&open);
            }
            if verdict == Verdict::Lost {
                self.unanswered.effect = Effect::Unknown;
            }
            if verdict.is_final() {
                return None;
            }
        }
    }
}

fn command(verb: &str, script: &str, keys: &[String], args: &[Vec<u8>]) -> Cmd {
    let mut command = redis::cmd(verb);
    command.arg(script).arg(keys.len()).arg(keys);
    for arg in args {
        command.arg(arg.as_slice());
    }
    command
}
