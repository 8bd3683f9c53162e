INSERT INTO flexiq_jobs (
    id, queue, lane, state, reason, rank, due_at, enqueued_at, expires_at,
    timeout_ms, max_retries, result_ttl_ms, codec, payload, unique_key, release
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
ON CONFLICT (id) DO NOTHING
