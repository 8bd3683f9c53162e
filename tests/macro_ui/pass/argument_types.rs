#![deny(warnings)]

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(serde::Serialize, serde::Deserialize)]
struct Private<T>(T);

#[derive(serde::Serialize, serde::Deserialize, Default)]
enum Format {
    #[default]
    Pdf,
    Html { wide: bool },
}

#[flexiq::task]
async fn take(
    maps: HashMap<String, BTreeMap<u8, Vec<Private<f64>>>>,
    wait: Duration,
    pair: (u8, [u16; 3]),
    boxed: Box<str>,
    fixed: std::borrow::Cow<'static, str>,
) {
    let _ = (maps, wait, pair, boxed, fixed);
}

#[flexiq::task]
async fn with_states(
    #[state] shared: Arc<Mutex<Vec<u8>>>,
    #[state] text: &'static str,
    #[state] function: fn(u8) -> u8,
    #[state] pair: (u8, u16),
    #[default] format: Format,
    #[default = Format::Html { wide: true }] other: Format,
) {
    let _ = (shared, text, function, pair, format, other);
}

fn main() {
    let _ = (enqueue_take, enqueue_with_states);
}
