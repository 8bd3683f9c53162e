UPDATE flexiq_jobs
SET state = 1,
    reason = 0,
    due_at = ?2,
    until = NULL,
    failures = 0,
    deferrals = 0,
    losses = 0,
    cancel_requested = 0,
    expires_at = NULL,
    started_at = NULL,
    ended_at = NULL,
    last_error = NULL
WHERE id = ?1
