#![allow(unused)]

#[flexiq::task(partition_by = format!("{}", renderer.name), unique_by = (account.renderer, context.job_id()))]
async fn f(#[state] renderer: Renderer, #[context] context: flexiq::Context, account: Account) {}

#[derive(Clone)]
struct Renderer {
    name: String,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Account {
    renderer: u8,
}

fn main() {}
