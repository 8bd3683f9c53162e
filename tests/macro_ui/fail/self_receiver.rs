#![allow(unused)]

struct Mailer;

impl Mailer {
    #[flexiq::task]
    async fn send(&self, address: String) {}
}

fn main() {}
