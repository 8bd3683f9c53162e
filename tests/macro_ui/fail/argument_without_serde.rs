#![allow(unused)]

mod shop {
    pub struct Order;
}

#[flexiq::task]
async fn ship(order: shop::Order, month: String) {}

fn main() {}
