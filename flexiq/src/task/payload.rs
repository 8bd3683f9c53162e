//! A stored payload, opened: the fields of its JSON object, each still as text.
//!
//! The generated code takes its parameters from it by name. Fields that no parameter names are ignored. No message
//! made here holds a part of the payload.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::TaskDefinition;
use super::parameter::Param;
use crate::error::Error;
use crate::job::Outcome;

/// The fields of one payload of one task.
#[derive(Debug)]
pub struct Payload<'a> {
    task: &'static TaskDefinition,
    fields: Fields<'a>,
}

/// A payload that does not fit the parameters of its task.
#[derive(Debug)]
pub struct Misfit(String);

impl<'a> Payload<'a> {
    /// Opens the JSON object that `Call` wrote.
    pub fn open(task: &'static TaskDefinition, json: &'a [u8]) -> Result<Self, Misfit> {
        match serde_json::from_slice(json) {
            Ok(fields) => Ok(Self { task, fields }),
            Err(error) => Err(Misfit(format!(
                "the payload of task {} is no JSON object: {}",
                task.name,
                describe(&error)
            ))),
        }
    }

    /// The value of a parameter that every payload must name.
    pub fn take<T>(&self, param: &Param<T>) -> Result<T, Misfit> {
        match self.fields.get(param.parameter().name) {
            Some(field) => self.decode(param, field),
            None => Err(self.misfit(
                param,
                "the payload does not name it; mark it #[default] if older jobs are stored without it",
            )),
        }
    }

    /// The value of a parameter with `#[default]`.
    pub fn take_or<T>(&self, param: &Param<T>, default: impl FnOnce() -> T) -> Result<T, Misfit> {
        match self.fields.get(param.parameter().name) {
            Some(field) => self.decode(param, field),
            None => Ok(default()),
        }
    }

    fn decode<T>(&self, param: &Param<T>, field: &RawValue) -> Result<T, Misfit> {
        param.decode(field).map_err(|reason| self.misfit(param, &reason))
    }

    fn misfit<T>(&self, param: &Param<T>, reason: &str) -> Misfit {
        Misfit(format!("{}: {reason}", described(param.parameter().name, self.task.name)))
    }
}

/// A parameter, as every message calls it.
pub(crate) fn described(parameter: &str, task: &str) -> String {
    format!("parameter {parameter} of task {task}")
}

impl From<Misfit> for Outcome {
    fn from(misfit: Misfit) -> Self {
        Self::Undecodable { error: misfit.0 }
    }
}

impl From<Misfit> for Error {
    fn from(misfit: Misfit) -> Self {
        let (what, reason) = misfit.0.split_once(": ").unwrap_or(("the payload", &misfit.0));
        Self::Decode { what: what.into(), reason: reason.into() }
    }
}

/// What serde found wrong, without the value that it found: that may be a password.
pub(crate) fn describe(error: &serde_json::Error) -> String {
    let text = error.to_string();
    for kind in ["invalid type: ", "invalid value: ", "unknown variant ", "unknown field "] {
        let Some(found) = text.strip_prefix(kind) else { continue };
        // What was found comes first, quoted after its kind; what was expected comes last.
        let found_kind = found.split(['"', '`', ',']).next().unwrap_or_default().trim();
        let kind = kind.trim_end();
        let space = if found_kind.is_empty() { "" } else { " " };
        return match text.rfind(", expected ").or_else(|| text.rfind(", there are no ")) {
            Some(at) => format!("{kind}{space}{found_kind}{}", &text[at..]),
            None => format!("{kind}{space}{found_kind}"),
        };
    }
    text
}

/// Keys and values of a JSON object in their order. Few, so that a search is faster than a map.
#[derive(Debug)]
struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// The last field of this name, as serde_json's own maps have it.
    fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| *value)
    }
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with a field for each parameter")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::with_capacity(map.size_hint().unwrap_or(4));
                while let Some((Key(key), value)) = map.next_entry()? {
                    fields.push((key, value));
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(Object)
    }
}

/// A key, borrowed unless it has escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl<'de> Visitor<'de> for Text {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E: de::Error>(self, key: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(key)))
            }

            fn visit_str<E: de::Error>(self, key: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(key.into())))
            }
        }

        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Argument;

    fn refusal<T: Argument + fmt::Debug>(json: &str) -> String {
        describe(&T::decode(json).expect_err(json))
    }

    #[test]
    fn a_refusal_says_what_was_expected_and_keeps_the_value_to_itself() {
        #[derive(Debug, serde::Serialize, serde::Deserialize)]
        enum Colour {
            Red,
            Green,
        }

        for (text, expected) in [
            (refusal::<u32>(r#""hunter2, expected 7""#), "invalid type: string, expected u32"),
            (refusal::<String>("4711"), "invalid type: integer, expected a string"),
            (refusal::<u8>("4711"), "invalid value: integer, expected u8"),
            (refusal::<String>(r#"["hunter2"]"#), "invalid type: sequence, expected a string"),
            (refusal::<Colour>(r#""hunter2""#), "unknown variant, expected `Red` or `Green`"),
            (refusal::<bool>("null"), "invalid type: null, expected a boolean"),
        ] {
            assert!(text.starts_with(expected), "{text}");
            assert!(!text.contains("hunter2") && !text.contains("4711"), "{text}");
        }
    }

    #[test]
    fn fields_are_found_by_name_with_escapes_and_the_last_of_two_counts() {
        let fields: Fields<'_> = serde_json::from_str(r#"{"a":1,"\u0062":[2, 3],"a":4}"#).expect("an object");
        assert_eq!(fields.get("a").map(RawValue::get), Some("4"));
        assert_eq!(fields.get("b").map(RawValue::get), Some("[2, 3]"));
        assert!(fields.get("c").is_none());
        for no_object in ["[]", "null", "{", "7", ""] {
            assert!(serde_json::from_str::<Fields<'_>>(no_object).is_err(), "{no_object}");
        }
    }
}
