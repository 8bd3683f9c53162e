-- A loss is a start in earnest: the job does not expire any more. A release leaves the expiry as it is.
UPDATE flexiq_jobs
SET state = ?2,
    reason = ?3,
    expires_at = CASE WHEN losses <> ?4 THEN NULL ELSE expires_at END,
    losses = ?4,
    ended_at = ?5,
    until = ?6
WHERE id = ?1
