#![allow(unused)]

#[flexiq::task]
async fn f(
    #[state(renderer)] a: u8,
    #[state] #[context] b: u8,
    #[secret] #[secret] c: u8,
    #[state] #[secret] d: u8,
    #[context] #[default] e: flexiq::Context,
    #[default(5)] f: u8,
) {
}

fn main() {}
