SELECT
    id, runs, failures, deferrals, losses, due_at, timeout_ms, max_retries, result_ttl_ms, codec, payload,
    rank
FROM flexiq_jobs INDEXED BY flexiq_jobs_ready
WHERE lane = ?1
  AND state = 1
ORDER BY rank, due_at, id
LIMIT ?2
