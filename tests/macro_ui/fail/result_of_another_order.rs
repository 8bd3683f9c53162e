// `Result<X>` is read as `Result<T = X, …>`.
#![allow(unused)]

pub type Result<E> = std::result::Result<(), E>;

#[flexiq::task]
async fn build() -> Result<String> {
    Ok(())
}

fn main() {}
