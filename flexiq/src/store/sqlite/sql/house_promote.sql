UPDATE flexiq_jobs
SET state = 1,
    reason = 0
WHERE id IN (
    SELECT id
    FROM flexiq_jobs INDEXED BY flexiq_jobs_scheduled
    WHERE queue = ?1
      AND state = 0
      AND due_at <= ?2
    ORDER BY due_at
    LIMIT ?3
)
RETURNING lane
