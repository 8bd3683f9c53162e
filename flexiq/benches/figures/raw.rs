//! Yardsticks on Redis: the same moves of data by bare commands and the plainest script, over one connection that all
//! share, from the runtime that runs flexiq's jobs.

use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, Script};

use crate::redis_server::Server;
use crate::usage::Usage;

/// How many jobs are moved by one script.
const BATCH: usize = 100;
/// How many scripts are under way at once.
const UNDER_WAY: usize = 4;

/// Acknowledges what the batch before has leased, then pops, leases and reads: four calls for each job.
const MOVE: &str = "
    local waiting, bodies, leases = KEYS[1], KEYS[2], KEYS[3]
    local deadline, most = ARGV[1], tonumber(ARGV[2])
    for i = 3, #ARGV do
      redis.call('ZREM', leases, ARGV[i])
    end
    local answer = {}
    for _ = 1, most do
      local id = redis.call('LPOP', waiting)
      if not id then break end
      redis.call('ZADD', leases, deadline, id)
      answer[#answer + 1] = id
      answer[#answer + 1] = redis.call('HGET', bodies, id)
    end
    return answer
";

/// Jobs in bare keys of a server.
#[derive(Clone)]
pub(crate) struct Raw {
    client: redis::Client,
    connection: MultiplexedConnection,
}

impl Raw {
    pub(crate) async fn open(server: &Server) -> Self {
        let client = redis::Client::open(server.tcp_url()).expect("it is a URL");
        let connection = connect(&client).await;
        Self { client, connection }
    }

    /// What the server has done so far.
    pub(crate) async fn usage(&self) -> Usage {
        Usage::of(&mut self.connection.clone()).await
    }

    async fn call<T: FromRedisValue>(&self, command: &redis::Cmd) -> T {
        command.query_async(&mut self.connection.clone()).await.expect("Redis answers")
    }

    /// Stores jobs: ids of 16 bytes in a list, bodies in a hash.
    pub(crate) async fn store(&self, jobs: usize, payload: &[u8]) {
        for from in (0..jobs).step_by(1_000) {
            let (mut waiting, mut bodies) = (redis::cmd("RPUSH"), redis::cmd("HSET"));
            waiting.arg("waiting");
            bodies.arg("bodies");
            for number in from..jobs.min(from + 1_000) {
                let id = id(number);
                waiting.arg(&id);
                bodies.arg(&id).arg(payload);
            }
            let _: i64 = self.call(&waiting).await;
            let _: i64 = self.call(&bodies).await;
        }
    }

    /// Moves all jobs through their leases, in batches of 100 of which a few are under way at once.
    pub(crate) async fn drain(&self) -> Duration {
        let begun = Instant::now();
        let movers: Vec<_> = (0..UNDER_WAY).map(|_| tokio::spawn(self.clone().move_all())).collect();
        for mover in movers {
            mover.await.expect("it does not panic");
        }
        begun.elapsed()
    }

    async fn move_all(self) {
        let script = Script::new(MOVE);
        let mut leased: Vec<Vec<u8>> = Vec::new();
        loop {
            let mut call = script.key("waiting");
            call.key("bodies").key("leases").arg(1_893_456_000_000_u64).arg(BATCH);
            for id in &leased {
                call.arg(id);
            }
            let mut connection = self.connection.clone();
            let moved: Vec<Vec<u8>> = call.invoke_async(&mut connection).await.expect("Redis answers");
            if moved.is_empty() {
                return;
            }
            leased = moved.into_iter().step_by(2).collect();
        }
    }

    /// Pushes one job at a time from each of many tasks.
    pub(crate) async fn push_each(&self, producers: usize, jobs: usize, payload: &[u8]) -> Duration {
        let begun = Instant::now();
        let push = |_| {
            let (raw, payload) = (self.clone(), payload.to_vec());
            tokio::spawn(async move {
                for _ in 0..jobs / producers {
                    let _: i64 = raw.call(redis::cmd("LPUSH").arg("pushed").arg(&payload)).await;
                }
            })
        };
        for producer in (0..producers).map(push).collect::<Vec<_>>() {
            producer.await.expect("it does not panic");
        }
        begun.elapsed()
    }

    /// Stores bodies in a hash and their ids in an order, a thousand at once.
    pub(crate) async fn store_in_bulk(&self, jobs: usize, body: &[u8]) -> Duration {
        let begun = Instant::now();
        for from in (0..jobs).step_by(1_000) {
            let (mut bodies, mut order) = (redis::cmd("HSET"), redis::cmd("ZADD"));
            bodies.arg("bodies");
            order.arg("order");
            for number in from..from + 1_000 {
                let id = id(number);
                bodies.arg(&id).arg(body);
                order.arg(0).arg(&id);
            }
            let mut both = redis::pipe();
            both.add_command(bodies).ignore().add_command(order).ignore();
            let () = both.query_async(&mut self.connection.clone()).await.expect("Redis answers");
        }
        begun.elapsed()
    }

    /// One `SET`.
    pub(crate) async fn set(&self, value: &[u8]) -> Duration {
        let begun = Instant::now();
        let () = self.call(redis::cmd("SET").arg("value").arg(value)).await;
        begun.elapsed()
    }

    /// Passes jobs one after the other from a push to the answer of the script that leases it, on a connection which
    /// slept in a blocking pop. Answers microseconds.
    pub(crate) async fn pass_each(&self, probes: usize) -> Vec<f64> {
        let (passed, mut started) = tokio::sync::mpsc::unbounded_channel();
        let sleeper = {
            let (raw, mut sleeping) = (self.clone(), connect(&self.client).await);
            tokio::spawn(async move {
                let script = Script::new(MOVE);
                let mut call = script.key("waiting");
                call.key("bodies").key("leases").arg(1_893_456_000_000_u64).arg(1);
                for _ in 0..probes {
                    let pop = redis::cmd("BLPOP").arg("bell").arg(0).to_owned();
                    let _: Vec<Vec<u8>> = pop.query_async(&mut sleeping).await.expect("Redis answers");
                    let mut connection = raw.connection.clone();
                    let _: Vec<Vec<u8>> = call.invoke_async(&mut connection).await.expect("Redis answers");
                    // The measurement may be over.
                    let _ = passed.send(Instant::now());
                }
            })
        };
        let mut took = Vec::new();
        for number in 0..probes {
            tokio::time::sleep(Duration::from_millis(2)).await;
            self.store_one(number).await;
            let begun = Instant::now();
            let _: i64 = self.call(redis::cmd("RPUSH").arg("bell").arg(1)).await;
            let start = started.recv().await.expect("the sleeper holds a sender");
            took.push(start.duration_since(begun).as_secs_f64() * 1e6);
        }
        sleeper.await.expect("it does not panic");
        took
    }

    async fn store_one(&self, number: usize) {
        let _: i64 = self.call(redis::cmd("HSET").arg("bodies").arg(&id(number)).arg(b"{}")).await;
        let _: i64 = self.call(redis::cmd("RPUSH").arg("waiting").arg(&id(number))).await;
    }
}

async fn connect(client: &redis::Client) -> MultiplexedConnection {
    // A blocking pop takes as long as it takes.
    let config = redis::AsyncConnectionConfig::new().set_response_timeout(None);
    client.get_multiplexed_async_connection_with_config(&config).await.expect("Redis answers")
}

/// An id as flexiq's are: its beginning ascends.
fn id(number: usize) -> [u8; 16] {
    let random = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (((number as u128) << 64) | u128::from(random)).to_be_bytes()
}
