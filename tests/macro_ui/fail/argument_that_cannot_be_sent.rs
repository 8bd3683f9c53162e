// One message of ours at the type; what follows is the compiler's, since the run cannot be sent either.
#![allow(unused)]

#[flexiq::task]
fn wait(rows: std::rc::Rc<u8>) {}

fn main() {}
