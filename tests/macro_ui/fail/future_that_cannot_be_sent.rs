#![allow(unused)]

use std::rc::Rc;

#[flexiq::task]
async fn hold(month: String) {
    let held = Rc::new(month);
    std::future::ready(()).await;
    drop(held);
}

fn main() {}
