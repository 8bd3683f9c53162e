UPDATE flexiq_jobs
SET timeout_ms = ?2,
    max_retries = ?3,
    result_ttl_ms = ?4,
    codec = ?5,
    payload = ?6
WHERE id = ?1
