#![allow(unused)]

#[flexiq::task]
async fn print(value: impl std::fmt::Display) {}

#[flexiq::task]
fn later() -> impl Future<Output = ()> {
    async {}
}

fn main() {}
