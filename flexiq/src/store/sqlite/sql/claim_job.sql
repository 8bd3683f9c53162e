SELECT
    id, runs, failures, deferrals, losses, due_at, timeout_ms, max_retries, result_ttl_ms, codec, payload
FROM flexiq_jobs
WHERE id = ?1
