//! What a Redis server has done so far, as it tells itself.

use std::collections::HashMap;

use redis::aio::MultiplexedConnection;

/// Commands that no script calls: each was sent by a client.
const SENT: [&str; 7] = ["evalsha", "eval", "ping", "hello", "client|setinfo", "subscribe", "unsubscribe"];

/// What a server has done so far, or between two moments.
pub(crate) struct Usage {
    /// CPU of its main thread, in microseconds: reading, running and answering.
    pub(crate) cpu: f64,
    /// Bytes of memory that its data takes.
    pub(crate) memory: f64,
    /// By command: calls, and microseconds within it.
    commands: HashMap<String, (f64, f64)>,
}

impl Usage {
    pub(crate) async fn of(connection: &mut MultiplexedConnection) -> Self {
        let text: String = redis::cmd("INFO")
            .arg(&["cpu", "memory", "commandstats"])
            .query_async(connection)
            .await
            .expect("the server tells of itself");
        let fields: HashMap<&str, &str> = text.lines().filter_map(|line| line.split_once(':')).collect();
        let number = |field: &str| fields.get(field).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
        let command = |(field, text): (&&str, &&str)| {
            let name = field.strip_prefix("cmdstat_").filter(|name| *name != "info")?;
            let of = |wanted: &str| {
                let mut parts = text.split(',').filter_map(|part| part.split_once('='));
                parts.find(|part| part.0 == wanted).and_then(|part| part.1.parse().ok())
            };
            Some((name.to_owned(), (of("calls")?, of("usec")?)))
        };
        Self {
            cpu: (number("used_cpu_user_main_thread") + number("used_cpu_sys_main_thread")) * 1e6,
            memory: number("used_memory"),
            commands: fields.iter().filter_map(command).collect(),
        }
    }

    /// What was done since `before`.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let less = |(name, (calls, time)): (&String, &(f64, f64))| {
            let (calls_before, time_before) = before.commands.get(name).copied().unwrap_or_default();
            (name.clone(), (calls - calls_before, time - time_before))
        };
        Self {
            cpu: self.cpu - before.cpu,
            memory: self.memory - before.memory,
            commands: self.commands.iter().map(less).collect(),
        }
    }

    /// Commands that clients sent.
    pub(crate) fn sent(&self) -> f64 {
        SENT.iter().filter_map(|name| self.commands.get(*name)).map(|command| command.0).sum()
    }

    /// Commands that scripts called.
    pub(crate) fn called(&self) -> f64 {
        self.commands.values().map(|command| command.0).sum::<f64>() - self.sent()
    }

    /// Microseconds within scripts.
    pub(crate) fn in_scripts(&self) -> f64 {
        self.commands.get("evalsha").map_or(0.0, |command| command.1)
    }
}
