UPDATE flexiq_jobs
SET state = 6,
    reason = 0,
    ended_at = ?3,
    until = ?5
WHERE id IN (
    SELECT id
    FROM flexiq_jobs INDEXED BY flexiq_jobs_expiring
    WHERE queue = ?1
      AND state <= 1
      AND state = ?2
      AND expires_at IS NOT NULL
      AND expires_at <= ?3
    ORDER BY expires_at
    LIMIT ?4
)
RETURNING id, lane
