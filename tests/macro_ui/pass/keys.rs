#![deny(warnings)]

#[derive(serde::Serialize, serde::Deserialize)]
struct Order {
    customer: String,
    renderer: u8,
}

#[flexiq::task(
    partition_by = order.customer,
    unique_by = { let half = account / 2; (half, &order.renderer, order.customer.len()) },
    max_pending_per_partition = 10,
)]
async fn ship(#[state] renderer: u8, order: Order, account: u32) {
    let _ = (renderer, order, account);
}

#[flexiq::task(partition_by = format!("{account}-{month}"), unique = "args")]
fn formatted(account: u32, month: String) {
    let _ = (account, month);
}

#[flexiq::task(partition_by = match month.as_str() { "10" => "october", _ => "other" })]
fn matched(month: String) {
    let _ = month;
}

fn main() {
    let key = task_formatted().definition().partition_key(br#"{"month":"10","account":7}"#);
    assert_eq!(key.ok().flatten().as_deref(), Some("7-10"));
    let _ = (enqueue_ship, enqueue_matched);
}
