UPDATE flexiq_jobs
SET state = 5,
    last_error = coalesce(?2, last_error),
    ended_at = ?3,
    until = ?4
WHERE id = ?1
