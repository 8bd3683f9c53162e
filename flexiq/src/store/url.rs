//! What the URLs of all stores have in common.

use crate::policy::nearest;

/// A part of a URL with its `%40` and the like put back; `what` is the part, for the message.
pub(crate) fn unescape(what: &str, text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|digit| (digit as char).to_digit(16));
        match (digit(), digit()) {
            (Some(high), Some(low)) => bytes.push((high * 16 + low) as u8),
            _ => return Err(format!("a % in {what} is written %25")),
        }
    }
    String::from_utf8(bytes).map_err(|_| format!("{what} is not UTF-8"))
}

/// A setting behind the `?` that a store does not have, in words that name the nearest one.
pub(crate) fn unknown_setting(key: &str, known: &[&str]) -> String {
    let hint = nearest(key, known.iter().copied())
        .map(|near| format!("; did you mean {near:?}?"))
        .unwrap_or_default();
    let verb = if known.len() == 1 { "is" } else { "are" };
    format!("unknown setting {key:?}{hint} (there {verb} {})", known.join(" and "))
}
