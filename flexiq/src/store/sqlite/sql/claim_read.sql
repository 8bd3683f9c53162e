SELECT
    id, runs, failures, deferrals, losses, due_at, timeout_ms, max_retries, result_ttl_ms, codec, payload,
    lane, started_at
FROM flexiq_jobs
WHERE id = ?1
  AND worker = ?2
  AND runs = ?3
  AND state = 2
