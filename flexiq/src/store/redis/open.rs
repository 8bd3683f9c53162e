//! Opening: what the server must be, and what it had better be.

use redis::Value;

use super::failure::refused;
use super::wire::Parts;
use super::{Shared, scripts};
use crate::error::{Error, Result};

/// The schema that this build writes.
const SCHEMA: u32 = 1;
/// The oldest server: one with the commands of its scripts.
const OLDEST: (u32, u32) = (6, 2);

/// Checks the server, and marks a store that is new.
pub(super) async fn open(store: &Shared) -> Result<()> {
    match store.call(&redis::cmd("INFO")).await {
        Ok(info) => check(store, &info_text(info))?,
        Err(Error::StoreRefused { reason, .. }) if reason.contains("ACL") => {
            tracing::warn!(
                store = store.place(),
                "INFO is forbidden here: version, role and eviction are not checked"
            );
        }
        Err(error) => return Err(error),
    }
    let args = vec![SCHEMA.to_string().into_bytes()];
    let answer = store.run_fleet(&scripts::FLEET_OPEN, args).await?;
    let found = u32::try_from(Parts::of(answer, store.place()).number()?).unwrap_or(u32::MAX);
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

fn check(store: &Shared, info: &str) -> Result<()> {
    let says = |key: &str| {
        info.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).unwrap_or_default().trim()
    };
    if let Some(version) = version(says("redis_version"))
        && version < OLDEST
    {
        let (found, least) = (says("redis_version"), OLDEST);
        let reason = format!("it is Redis {found}, and flexiq needs {}.{} or later", least.0, least.1);
        return Err(refused(store.place(), reason, None));
    }
    if says("role") == "slave" {
        return Err(refused(store.place(), "it is a replica: name the master".into(), None));
    }
    if says("redis_mode") == "cluster" {
        return Err(refused(store.place(), "it is a cluster, which is not built yet".into(), None));
    }
    let policy = says("maxmemory_policy");
    if !policy.is_empty() && policy != "noeviction" {
        let reason = format!(
            "its maxmemory-policy is {policy}, which may delete jobs: set maxmemory-policy noeviction, or use another server"
        );
        return Err(refused(store.place(), reason, None));
    }
    Ok(())
}

fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}
