UPDATE flexiq_jobs
SET state = 4,
    reason = ?2,
    failures = failures + ?3,
    deferrals = deferrals + ?4,
    last_error = coalesce(?5, last_error),
    ended_at = ?6,
    until = ?7
WHERE id = ?1
