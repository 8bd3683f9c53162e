-- A failed run has been started in earnest: its job does not expire any more. A deferral leaves the expiry as it is.
UPDATE flexiq_jobs
SET state = ?2,
    reason = ?3,
    due_at = coalesce(?4, due_at),
    until = NULL,
    failures = failures + ?5,
    deferrals = deferrals + ?6,
    last_error = coalesce(?7, last_error),
    expires_at = CASE WHEN ?5 THEN NULL ELSE expires_at END
WHERE id = ?1
RETURNING expires_at
