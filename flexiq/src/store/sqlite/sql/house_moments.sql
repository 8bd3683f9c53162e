SELECT
    (SELECT min(due_at) FROM flexiq_jobs INDEXED BY flexiq_jobs_scheduled WHERE queue = ?1 AND state = 0),
    (
        SELECT min(expires_at)
        FROM flexiq_jobs INDEXED BY flexiq_jobs_expiring
        WHERE queue = ?1 AND state <= 1 AND expires_at IS NOT NULL
    ),
    (SELECT min(until) FROM flexiq_jobs INDEXED BY flexiq_jobs_leased WHERE queue = ?1 AND state = 2)
