UPDATE flexiq_jobs
SET state = 2,
    runs = runs + 1,
    worker = ?2,
    started_at = ?3,
    until = ?4,
    max_losses = ?5,
    lapse = 0,
    cancel_requested = 0
WHERE id = ?1
RETURNING runs, failures, deferrals, losses, due_at, timeout_ms, max_retries, result_ttl_ms, codec, payload
