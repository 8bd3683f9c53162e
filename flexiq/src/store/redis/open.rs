//! Opening: what the server must be, and what it had better be.

use redis::Value;

use super::failure::refused;
use super::wire::Parts;
use super::{Shared, scripts};
use crate::error::{Error, Result};
use crate::store::Absent;

/// The schema that this build writes.
const SCHEMA: u32 = 1;
/// The oldest server: one with the commands of its scripts.
const OLDEST: (u32, u32) = (6, 2);

/// Checks the server, and marks a store that is new, or refuses it.
pub(super) async fn open(store: &Shared, absent: Absent) -> Result<()> {
    match store.call(&redis::cmd("INFO")).await {
        Ok(info) => {
            if let Some(reason) = unfit(&info_text(info)) {
                return Err(refused(store.place(), reason, None));
            }
        }
        Err(Error::StoreRefused { reason, .. }) if reason.contains("ACL") => {
            tracing::warn!(
                store = store.place(),
                "INFO is forbidden here: version, role and eviction are not checked"
            );
        }
        Err(error) => return Err(error),
    }
    let newest = match absent {
        Absent::Create => SCHEMA.to_string(),
        Absent::Refuse => String::new(),
    };
    let args = vec![newest.into_bytes()];
    let answer = store.run_fleet(&scripts::FLEET_OPEN, args).await?;
    let found = u32::try_from(Parts::of(answer, store.place()).number()?).unwrap_or(u32::MAX);
    if found == 0 {
        let reason = format!(
            "there is no store with the prefix {:?}: a worker or a producer creates one when it opens it",
            store.prefix()
        );
        return Err(refused(store.place(), reason, None));
    }
    if found > SCHEMA {
        return Err(Error::UnsupportedSchema { store: store.place().into(), found, known: SCHEMA });
    }
    Ok(())
}

fn info_text(info: Value) -> String {
    match info {
        Value::BulkString(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Value::VerbatimString { text, .. } | Value::SimpleString(text) => text,
        _ => String::new(),
    }
}

/// Why a server that says this of itself is not one to use.
fn unfit(info: &str) -> Option<String> {
    let says = |key: &str| {
        info.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).unwrap_or_default().trim()
    };
    let (found, least) = (says("redis_version"), OLDEST);
    if version(found).is_some_and(|version| version < OLDEST) {
        return Some(format!("it is Redis {found}, and flexiq needs {}.{} or later", least.0, least.1));
    }
    if says("role") == "slave" {
        return Some("it is a replica: name the master".into());
    }
    if says("redis_mode") == "cluster" {
        return Some("it is a cluster, which is not built yet".into());
    }
    let policy = says("maxmemory_policy");
    (!policy.is_empty() && policy != "noeviction").then(|| {
        format!(
            "its maxmemory-policy is {policy}, which may delete jobs: set maxmemory-policy noeviction, or use another server"
        )
    })
}

fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_server_a_replica_a_node_and_one_that_evicts_are_not_ones_to_use() {
        for (info, reason) in [
            ("redis_version:6.0.16\r\n", Some("it is Redis 6.0.16, and flexiq needs 6.2 or later")),
            ("redis_version:5.0.7\r\nrole:master\r\n", Some("flexiq needs 6.2")),
            ("redis_version:6.2.0\r\n", None),
            ("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.0\r\n", None),
            ("redis_version:255.255.255\r\nrole:master\r\nredis_mode:standalone\r\n", None),
            ("redis_version:7.0.1\r\nrole:slave\r\n", Some("it is a replica: name the master")),
            ("redis_version:7.0.1\r\nredis_mode:cluster\r\n", Some("it is a cluster")),
            ("maxmemory_policy:allkeys-lru\r\n", Some("set maxmemory-policy noeviction")),
            ("maxmemory_policy:noeviction\r\n", None),
            // A proxy that says nothing of itself is believed.
            ("", None),
        ] {
            let unfit = unfit(info);
            assert_eq!(unfit.is_some(), reason.is_some(), "{info}: {unfit:?}");
            assert!(unfit.unwrap_or_default().contains(reason.unwrap_or_default()), "{info}");
        }
    }
}
