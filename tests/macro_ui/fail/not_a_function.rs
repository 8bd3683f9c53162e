#![allow(unused)]

#[flexiq::task]
struct Report;

trait Reports {
    #[flexiq::task]
    fn build();
}

fn main() {
    let _ = Report;
}
