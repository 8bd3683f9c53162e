//! What makes a job the only one of its kind, as a store sees it: a key, when it is free again, and what a call does
//! that finds it taken.

use std::fmt;
use std::time::Duration;

use hmac_sha256::Hash;

use crate::name::Name;

/// What at most one job of a queue has: the first sixteen bytes of the SHA-256 of its task and of what the call is unique
/// by. So no two tasks share a key, none is longer than another, and what is secret of it is not stored.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UniqueKey([u8; 16]);

impl UniqueKey {
    /// The key of calls of a task that are unique by this text.
    pub fn by_text(task: &Name, text: &str) -> Self {
        Self::hash(&[task.as_bytes(), b"\0=", text.as_bytes()])
    }

    /// The key that all calls of a task share, or all of one of its partitions. No text has it.
    pub fn of_partition(task: &Name, partition: &str) -> Self {
        Self::hash(&[task.as_bytes(), b"\0*", partition.as_bytes()])
    }

    fn hash(parts: &[&[u8]]) -> Self {
        let mut hash = Hash::new();
        parts.iter().for_each(|part| hash.update(part));
        let digest = hash.finalize();
        Self(*digest.first_chunk().expect("a SHA-256 has 32 bytes"))
    }

    /// Its sixteen bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Debug for UniqueKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UniqueKey({:02x}{:02x}…)", self.0[0], self.0[1])
    }
}

/// Why a job is the only one of its kind, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unique {
    /// Its key, which it takes unless another has it.
    pub key: UniqueKey,
    /// When the key is free again.
    pub release: Release,
    /// What becomes of the job that has the key, where another has it.
    pub on_duplicate: OnDuplicate,
}

/// When a key is free again. A job that is deleted by hand frees it at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// When its job ends, but not sooner than so long after the enqueue.
    AtEnd {
        /// Zero where the end alone counts.
        at_least: Duration,
    },
    /// When its job first starts, or ends without; but not sooner than so long after the enqueue. A later start does not
    /// take it again.
    AtStart {
        /// Zero where the start alone counts.
        at_least: Duration,
    },
    /// So long after the enqueue, whatever becomes of its job.
    After(Duration),
}

impl Release {
    /// How long after the enqueue the key is held in any case.
    pub fn held_for(self) -> Duration {
        match self {
            Self::AtEnd { at_least } | Self::AtStart { at_least } => at_least,
            Self::After(time) => time,
        }
    }

    /// Whether time has a part in it.
    pub fn is_timed(self) -> bool {
        !self.held_for().is_zero()
    }
}

/// What a call does to the job that has its key. The call itself stores nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDuplicate {
    /// Nothing.
    Keep,
    /// Its arguments, and what the call sets for its runs, are replaced while it is pending.
    Replace,
    /// The same; and while it waits for the due time that it was stored with, due time and expiry are those of this call, too.
    Postpone,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_two_tasks_or_of_a_partition_and_a_text_differ() {
        let task = |name| Name::new("task", name).expect("a name");
        let keys = [
            UniqueKey::by_text(&task("send"), "a"),
            UniqueKey::by_text(&task("send"), "b"),
            UniqueKey::by_text(&task("sen"), "da"),
            UniqueKey::of_partition(&task("send"), "a"),
            UniqueKey::of_partition(&task("send"), ""),
        ];
        for (index, key) in keys.iter().enumerate() {
            assert!(!keys[..index].contains(key), "{index}");
        }
        assert_eq!(keys[0], UniqueKey::by_text(&task("send"), "a"));
    }

    #[test]
    fn a_key_is_half_of_a_sha_256() {
        // printf 'send\0=a' | sha256sum
        let key = UniqueKey::by_text(&Name::new("task", "send").expect("a name"), "a");
        let hex: String = key.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "033f692df0879eab5a869c4d7275e037");
    }
}
