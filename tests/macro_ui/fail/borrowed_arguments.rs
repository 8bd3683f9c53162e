#![allow(unused)]

use std::borrow::Cow;
use std::path::Path;

#[flexiq::task]
async fn borrow(name: &str, bytes: &[u8], path: &Path, order: &mut Vec<String>, text: Cow<'static, str>, some: Option<&str>) {}

fn call(queue: &flexiq::Queue) {
    let _ = enqueue_borrow(queue, "a", b"b", Path::new("c"), &mut vec![], "d".into(), None);
}

fn main() {}
