//! metrics: the page for Prometheus.

use serde_json::json;

use super::failure::Failure;
use super::report::Report;
use crate::queue::Queue;

pub(super) async fn page(queue: &Queue) -> Result<Report, Failure> {
    let page = queue.prometheus().await?;
    let json = json!({ "prometheus": page });
    Ok(Report::new(page, json))
}
