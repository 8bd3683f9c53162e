//! The one connection of a handle: made by the first who needs it, shared by all, forgotten when it breaks, and made anew.
//!
//! While the server is away it alone tries, after pauses that grow, however many callers wait for it. It lives on a thread
//! of its own, so that a task which never yields stops no heartbeat, and no runtime of a caller takes it along.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, IntoConnectionInfo, ProtocolVersion, PushInfo,
    PushKind, RedisConnectionInfo, RedisResult, Value,
};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::options::{Address, RedisOptions};
use crate::error::{Error, Result};

/// The shortest and the longest time from one try to the next. Each pause is shortened at random by up to a half, so that
/// a fleet which lost its server does not come back at once; the shortest is kept.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

/// What the server's messages are told to.
pub(super) type Told = Arc<dyn Fn(PushInfo) + Send + Sync>;

/// What a try to connect came to, once it has ended.
type Tried = watch::Receiver<Option<RedisResult<Open>>>;

/// A connection that is there.
#[derive(Clone)]
pub(super) struct Open {
    number: u64,
    connection: MultiplexedConnection,
    /// Cancelled when its driver has ended.
    ended: CancellationToken,
}

impl Open {
    /// Sends one command; its answer, or how the connection ended before it came.
    ///
    /// A command that is handed to the driver while it ends may lie between them, where nobody drops it and its answer is
    /// awaited for ever: so the end is listened for, too.
    pub(super) async fn send(&self, command: &Cmd) -> RedisResult<Value> {
        let mut connection = self.connection.clone();
        tokio::select! {
            biased;
            answer = connection.send_packed_command(command) => answer,
            () = self.ended.cancelled() => Err((redis::ErrorKind::Io, "the connection ended").into()),
        }
    }
}

/// The connection of a handle.
pub(super) struct Connection {
    shared: Arc<Shared>,
    runtime: Handle,
    /// The thread ends when this is dropped.
    _stop: oneshot::Sender<()>,
}

struct Shared {
    options: RedisOptions,
    /// The channels that messages come over.
    channels: Vec<Vec<u8>>,
    told: Told,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: Option<Open>,
    /// The try that is under way.
    trying: Option<Tried>,
    /// Tries so far.
    tries: u64,
    /// Those since a call was last answered.
    in_vain: u32,
    /// When the next may be made.
    next: Option<Instant>,
    /// Whether any call was ever answered.
    is_proven: bool,
}

impl Connection {
    /// Connects with the first call.
    pub(super) fn new(options: &RedisOptions, channels: Vec<Vec<u8>>, told: Told) -> Result<Self> {
        let (runtime, stop) = start_thread(&options.place())?;
        let shared = Shared { options: options.clone(), channels, told, state: Mutex::default() };
        Ok(Self { shared: Arc::new(shared), runtime, _stop: stop })
    }

    /// The connection, or what came of the next try to make it.
    pub(super) async fn get(&self) -> RedisResult<Open> {
        let mut trying = {
            let mut state = self.shared.lock();
            if let Some(open) = &state.open {
                return Ok(open.clone());
            }
            match &state.trying {
                Some(trying) => trying.clone(),
                None => {
                    let (tell, trying) = watch::channel(None);
                    state.trying = Some(trying.clone());
                    let shared = self.shared.clone();
                    self.runtime.spawn(async move { shared.try_to_connect(&tell).await });
                    trying
                }
            }
        };
        let closed = || Err((redis::ErrorKind::Io, "the store is closed").into());
        trying
            .wait_for(Option::is_some)
            .await
            .map_or_else(|_| closed(), |tried| tried.clone().unwrap_or_else(closed))
    }

    /// A call was answered over this connection.
    pub(super) fn answered(&self) {
        let mut state = self.shared.lock();
        (state.in_vain, state.is_proven) = (0, true);
    }

    /// Whether any call was ever answered: then the server is there, and will be back.
    pub(super) fn is_proven(&self) -> bool {
        self.shared.lock().is_proven
    }

    /// This connection is of no use any more. Messages may have been lost with it.
    pub(super) fn forget(&self, open: &Open) {
        {
            let mut state = self.shared.lock();
            if state.open.as_ref().is_none_or(|known| known.number != open.number) {
                return;
            }
            state.open = None;
        }
        tracing::debug!(store = self.shared.options.place(), "the connection is given up");
        (self.shared.told)(PushInfo { kind: PushKind::Disconnection, data: Vec::new() });
    }

    /// Does something in the background, on the connection's thread.
    pub(super) fn spawn(&self, step: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(step);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn try_to_connect(&self, tell: &watch::Sender<Option<RedisResult<Open>>>) {
        let next = self.lock().next;
        if let Some(next) = next {
            tokio::time::sleep_until(next).await;
        }
        let number = self.begin();
        let ended = CancellationToken::new();
        let connected = self.connect(&ended).await;
        let tried = connected.map(|connection| Open { number, connection, ended });
        let mut state = self.lock();
        state.trying = None;
        state.open = tried.as_ref().ok().cloned();
        drop(state);
        tell.send_replace(Some(tried));
    }

    /// Counts a try, and says when the next may be made should this one be in vain.
    fn begin(&self) -> u64 {
        let mut state = self.lock();
        let grown = PAUSES[0].saturating_mul(1 << state.in_vain.min(10)).min(PAUSES[1]);
        let pause = grown.mul_f64(1.0 - fastrand::f64() / 2.0).max(PAUSES[0]);
        state.next = Some(Instant::now() + pause);
        state.in_vain += 1;
        state.tries += 1;
        state.tries
    }

    /// Connects, listens for messages before anything else is sent, and makes sure that commands are answered: a server
    /// that loads its data lets everybody in. `ended` will be cancelled when the connection's driver ends, however it does.
    async fn connect(&self, ended: &CancellationToken) -> RedisResult<MultiplexedConnection> {
        // The driver takes it along.
        let (told, ends) = (self.told.clone(), ended.clone().drop_guard());
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None)
            .set_push_sender(move |push: PushInfo| {
                let _ = &ends;
                told(push);
                Ok::<(), redis::aio::SendError>(())
            });
        let connecting = async {
            let mut connection =
                client(&self.options)?.get_multiplexed_async_connection_with_config(&config).await?;
            connection.subscribe(self.channels.clone()).await?;
            redis::cmd("PING").exec_async(&mut connection).await?;
            Ok(connection)
        };
        // Half of a call's time, so that a call outlasts a try which hangs.
        tokio::time::timeout(self.options.timeout / 2, connecting).await.unwrap_or_else(|_| {
            Err(std::io::Error::new(std::io::ErrorKind::TimedOut, "no answer to the greeting").into())
        })
    }
}

/// How to connect. Files are read anew: certificates are renewed while programs run.
fn client(options: &RedisOptions) -> RedisResult<Client> {
    let address = match options.address.clone() {
        Address::Tcp(host, port) => ConnectionAddr::Tcp(host, port),
        Address::Tls(host, port) => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
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
    let info = address.into_connection_info()?;
    // What a connection that is given up has not delivered, it takes along: an old turn must not come after a newer one.
    let tcp = info.tcp_settings().clone().set_nodelay(true).set_linger_time(Duration::ZERO);
    let info = info.set_redis_settings(settings).set_tcp_settings(tcp);
    #[cfg(feature = "tls")]
    if let Address::Tls(..) = options.address {
        super::tls::choose_crypto();
        let certificates = super::tls::read(&options.certificates).map_err(std::io::Error::other)?;
        return Client::build_with_tls(info, certificates);
    }
    Client::open(info)
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
