//! The connection to the server: one, shared by all calls of a handle, and made anew when it breaks.
//!
//! It lives on a thread of its own, so that a task which never yields stops no heartbeat, and no runtime of a caller takes
//! it along when it ends. The server's messages come over it, too.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, IntoConnectionInfo, ProtocolVersion, PushInfo,
    RedisConnectionInfo, RedisError, RedisResult, Value,
};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::failure::{explain, unavailable};
use super::options::{Address, RedisOptions};
use super::scripts::Script;
use crate::error::{Effect, Error, Result};

/// How often a call is sent at most: verbs may be sent again, and a connection may have broken while nobody looked.
const MOST_SENDS: u32 = 2;

/// What the server's messages are told to.
pub(super) type Told = Arc<dyn Fn(PushInfo) + Send + Sync>;

/// The connection to the server.
pub(super) struct Link {
    door: Arc<Door>,
    pub(super) place: String,
    timeout: Duration,
    runtime: Handle,
    /// The thread ends when this is dropped.
    _stop: oneshot::Sender<()>,
}

/// Where the connection is made. Only the link's own thread waits here: a caller may stop polling at any time, and must
/// not keep the others out.
struct Door {
    client: Client,
    timeout: Duration,
    /// The channels that messages come over.
    channels: Vec<Vec<u8>>,
    told: Told,
    open: Mutex<Option<(u64, MultiplexedConnection)>>,
    /// One makes the connection, the others wait for it.
    opening: tokio::sync::Mutex<()>,
}

impl Link {
    /// A link that connects with its first call.
    pub(super) fn new(options: &RedisOptions, channels: Vec<Vec<u8>>, told: Told) -> Result<Self> {
        let place = options.place();
        let address = match options.address.clone() {
            Address::Tcp(host, port) => ConnectionAddr::Tcp(host, port),
            Address::Socket(path) => ConnectionAddr::Unix(path),
        };
        let mut settings = RedisConnectionInfo::default()
            .set_protocol(ProtocolVersion::RESP3)
            .set_db(options.database)
            .set_lib_name("flexiq", env!("CARGO_PKG_VERSION"));
        if let Some(user) = &options.user {
            settings = settings.set_username(user);
        }
        if let Some(password) = &options.password {
            settings = settings.set_password(password);
        }
        let client = address
            .into_connection_info()
            .map(|info| {
                let tcp = info.tcp_settings().clone().set_nodelay(true);
                info.set_redis_settings(settings).set_tcp_settings(tcp)
            })
            .and_then(Client::open)
            .map_err(|error| explain(error, &place, Effect::None))?;
        let (runtime, stop) = start_thread(&place)?;
        let door = Arc::new(Door {
            client,
            timeout: options.timeout,
            channels,
            told,
            open: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
        });
        Ok(Self { door, place, timeout: options.timeout, runtime, _stop: stop })
    }

    /// Runs a script.
    pub(super) async fn run(&self, script: &Script, keys: &[String], args: &[Vec<u8>]) -> Result<Value> {
        let by_hash = command("EVALSHA", &script.hash, keys, args);
        match self.send(&by_hash).await {
            Err(Sent::Refused(error)) if error.code() == Some("NOSCRIPT") => {
                self.send(&command("EVAL", &script.code, keys, args)).await
            }
            answer => answer,
        }
        .map_err(|sent| self.explain(sent))
    }

    /// Sends one command.
    pub(super) async fn call(&self, command: &Cmd) -> Result<Value> {
        self.send(command).await.map_err(|sent| self.explain(sent))
    }

    /// Does something in the background, on the link's own thread.
    pub(super) fn spawn(&self, step: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(step);
    }

    async fn send(&self, command: &Cmd) -> std::result::Result<Value, Sent> {
        let sending = async {
            for sends in 1.. {
                // What was sent before may have been carried out, though nobody can be reached now.
                let unsent = if sends == 1 { Sent::NotYet } else { Sent::Lost };
                let (number, mut connection) = self.connection().await.map_err(unsent)?;
                match connection.send_packed_command(command).await {
                    Ok(Value::ServerError(error)) => return Err(Sent::Refused(error.into())),
                    Ok(answer) => return Ok(answer),
                    Err(error) if error.is_io_error() || error.is_connection_dropped() => {
                        self.door.forget(number);
                        if sends == MOST_SENDS {
                            return Err(Sent::Lost(error));
                        }
                    }
                    Err(error) => return Err(Sent::Refused(error)),
                }
            }
            unreachable!("it sends until it returns")
        };
        tokio::time::timeout(self.timeout, sending).await.unwrap_or(Err(Sent::TimedOut))
    }

    fn explain(&self, sent: Sent) -> Error {
        match sent {
            Sent::NotYet(error) => explain(error, &self.place, Effect::None),
            Sent::Refused(error) | Sent::Lost(error) => explain(error, &self.place, Effect::Unknown),
            Sent::TimedOut => unavailable(
                &self.place,
                Effect::Unknown,
                &format!("no answer within {:?}", self.timeout),
                None,
            ),
        }
    }

    async fn connection(&self) -> RedisResult<(u64, MultiplexedConnection)> {
        if let Some(open) = &*self.door.lock() {
            return Ok(open.clone());
        }
        let door = self.door.clone();
        let connecting = self.runtime.spawn(async move { door.connection().await });
        connecting.await.unwrap_or_else(|_| Err((redis::ErrorKind::Io, "the store is closed").into()))
    }
}

impl Door {
    fn lock(&self) -> MutexGuard<'_, Option<(u64, MultiplexedConnection)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection of this number has broken.
    fn forget(&self, number: u64) {
        let mut open = self.lock();
        if open.as_ref().is_some_and(|(known, _)| *known == number) {
            *open = None;
        }
    }

    /// The connection that is open, or a new one.
    async fn connection(&self) -> RedisResult<(u64, MultiplexedConnection)> {
        let _alone = self.opening.lock().await;
        if let Some(open) = &*self.lock() {
            return Ok(open.clone());
        }
        let open = (fastrand::u64(..), self.connect().await?);
        *self.lock() = Some(open.clone());
        Ok(open)
    }

    /// Connects, and listens for messages before anything else is sent.
    async fn connect(&self) -> RedisResult<MultiplexedConnection> {
        let told = self.told.clone();
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.timeout))
            .set_response_timeout(None)
            .set_push_sender(move |push: PushInfo| {
                told(push);
                Ok::<(), redis::aio::SendError>(())
            });
        let mut connection = self.client.get_multiplexed_async_connection_with_config(&config).await?;
        connection.subscribe(self.channels.clone()).await?;
        Ok(connection)
    }
}

/// What became of a call that was not answered well.
enum Sent {
    /// There is no connection.
    NotYet(RedisError),
    Refused(RedisError),
    /// The connection broke before the answer came.
    Lost(RedisError),
    TimedOut,
}

fn command(verb: &str, script: &str, keys: &[String], args: &[Vec<u8>]) -> Cmd {
    let mut command = redis::cmd(verb);
    command.arg(script).arg(keys.len()).arg(keys);
    for arg in args {
        command.arg(arg.as_slice());
    }
    command
}

/// The thread that the connection lives on, until the answer's second part is dropped.
fn start_thread(place: &str) -> Result<(Handle, oneshot::Sender<()>)> {
    let refused = |error: std::io::Error| Error::StoreRefused {
        store: place.into(),
        reason: "this process may start no more threads".into(),
        source: Some(error.into()),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(refused)?;
    let handle = runtime.handle().clone();
    let (stop, stopped) = oneshot::channel();
    std::thread::Builder::new()
        .name("flexiq-redis".into())
        .spawn(move || runtime.block_on(async { stopped.await.unwrap_or(()) }))
        .map_err(refused)?;
    Ok((handle, stop))
}
