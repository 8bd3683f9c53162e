//! Keys made of a payload: its partition, and what makes it unique.
//!
//! They come from canonical JSON, object keys sorted here: what serde_json does with a map's order depends on the
//! features that some other crate of the build turns on.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;

use super::TaskDefinition;
use crate::error::{Error, Result};

/// Bytes of a partition at most.
const LONGEST_PARTITION: usize = 200;

/// Containers within each other at most, as serde_json has it.
const DEEPEST: usize = 128;

/// What `partition_by`, `unique_by` and the key of a limit must be.
#[diagnostic::on_unimplemented(
    message = "`partition_by`, `unique_by` and `.key(..)` cannot make a key of `{Self}`",
    label = "not `Serialize`",
    note = "use a parameter, a field of one, or a tuple of them, such as `(account_id, month)`"
)]
pub trait Key {
    #[doc(hidden)]
    fn json(&self) -> serde_json::Result<Box<RawValue>>;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + ?Sized> Key for T {
    fn json(&self) -> serde_json::Result<Box<RawValue>> {
        serde_json::value::to_raw_value(self)
    }
}

/// The key of the value of a user's expression: a string bare, everything else as canonical JSON.
pub fn key_of<K: Key + ?Sized>(task: &TaskDefinition, key: &K) -> Result<String> {
    key_text(format!("a key of task {}", task.name), key)
}

/// The key that a value makes, for what `what` says.
pub(crate) fn key_text<K: Key + ?Sized>(what: String, key: &K) -> Result<String> {
    let encode = |source| Error::Encode { what: what.clone(), source };
    let json = key.json().map_err(encode)?;
    if json.get().starts_with('"') {
        return serde_json::from_str(json.get()).map_err(encode);
    }
    canonical(&json).map_err(encode)
}

/// A key as the name of a partition. That of an empty string is `""`, with its quotes: an empty name would be none.
///
/// # Errors
///
/// [`Error::Invalid`] if it has more than 200 bytes.
pub(crate) fn partition_name(what: impl FnOnce() -> String, key: String) -> Result<String> {
    if key.len() > LONGEST_PARTITION {
        return Err(Error::Invalid {
            what: what(),
            given: format!("one of {} bytes", key.len()),
            accepted: format!("at most {LONGEST_PARTITION} bytes"),
        });
    }
    Ok(if key.is_empty() { "\"\"".into() } else { key })
}

/// The key of all arguments of a task.
///
/// # Errors
///
/// [`Error::Decode`] if the payload is no JSON.
pub(crate) fn arguments_key(task: &str, payload: &[u8]) -> Result<String> {
    serde_json::from_slice::<&RawValue>(payload).and_then(canonical).map_err(|error| Error::Decode {
        what: format!("the payload of task {task}"),
        reason: error.to_string(),
    })
}

impl TaskDefinition {
    /// The partition of a payload, if the task has `partition_by`.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`] if the payload does not fit, [`Error::Invalid`] if the partition has more than 200 bytes.
    pub fn partition_key(&self, payload: &[u8]) -> Result<Option<String>> {
        let Some(partition) = &self.partition else { return Ok(None) };
        partition_name(|| format!("partition of task {}", self.name), (partition.key)(payload)?).map(Some)
    }

    /// What makes a payload unique, if the task has `unique` or `unique_by`.
    ///
    /// It may be as long as the payload and hold what is secret: a store keeps a hash of it.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`] if the payload does not fit.
    pub fn unique_key(&self, payload: &[u8]) -> Result<Option<String>> {
        let Some(unique) = &self.unique else { return Ok(None) };
        let key = match unique.key {
            Some(key) => key(payload)?,
            None => arguments_key(self.name, payload)?,
        };
        Ok(Some(key))
    }
}

/// The same value in one spelling: object keys sorted, no spaces, strings escaped in one way.
fn canonical(json: &RawValue) -> serde_json::Result<String> {
    let mut text = String::with_capacity(json.get().len());
    write_canonical(json, DEEPEST, &mut text)?;
    Ok(text)
}

fn write_canonical(json: &RawValue, depth: usize, text: &mut String) -> serde_json::Result<()> {
    let deeper = || {
        depth.checked_sub(1).ok_or_else(|| serde::de::Error::custom(format!("nested deeper than {DEEPEST}")))
    };
    match json.get().as_bytes().first() {
        Some(b'{') => {
            let fields: BTreeMap<String, &RawValue> = serde_json::from_str(json.get())?;
            text.push('{');
            for (index, (key, value)) in fields.into_iter().enumerate() {
                text.push_str(if index == 0 { "" } else { "," });
                text.push_str(&serde_json::to_string(&key)?);
                text.push(':');
                write_canonical(value, deeper()?, text)?;
            }
            text.push('}');
        }
        Some(b'[') => {
            let elements: Vec<&RawValue> = serde_json::from_str(json.get())?;
            text.push('[');
            for (index, value) in elements.into_iter().enumerate() {
                text.push_str(if index == 0 { "" } else { "," });
                write_canonical(value, deeper()?, text)?;
            }
            text.push(']');
        }
        Some(b'"') => {
            let string: String = serde_json::from_str(json.get())?;
            text.push_str(&serde_json::to_string(&string)?);
        }
        // Numbers stay as they are spelled: 128 bits and more than a float holds are kept.
        _ => text.push_str(json.get()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical_of(json: &str) -> serde_json::Result<String> {
        canonical(serde_json::from_str(json)?)
    }

    #[test]
    fn one_value_has_one_spelling_whatever_the_order_of_its_keys() {
        let spelled = r#"{"a":[{"x":1,"y":null}],"b":"ä\n","ä":340282366920938463463374607431768211455}"#;
        for json in [
            spelled,
            "{ \"ä\": 340282366920938463463374607431768211455,\n \"b\":\"\\u00e4\\u000a\", \"\\u0061\": [ {\"y\" :null,\"x\":1} ] }",
        ] {
            assert_eq!(canonical_of(json).expect(json), spelled);
        }
    }

    #[test]
    fn nesting_without_end_is_refused_instead_of_overflowing_the_stack() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(canonical_of(&nested(DEEPEST)).is_ok());
        assert!(canonical_of(&nested(100_000)).is_err());
    }
}
