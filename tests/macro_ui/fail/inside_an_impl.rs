// Without `self` the macro cannot see that it stands in an `impl`: these are the compiler's own words.
#![allow(unused)]

struct Mailer;

impl Mailer {
    #[flexiq::task]
    async fn send(address: String) {}
}

fn main() {}
