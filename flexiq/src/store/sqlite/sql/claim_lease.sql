-- The first so many of a lane: the very rows that claim_heads.sql has read in this transaction.
UPDATE flexiq_jobs
SET state = 2,
    runs = runs + 1,
    worker = ?3,
    started_at = ?4,
    until = ?5,
    max_losses = ?6,
    lapse = 0,
    cancel_requested = 0
WHERE id IN (
    SELECT id
    FROM flexiq_jobs INDEXED BY flexiq_jobs_ready
    WHERE lane = ?1
      AND state = 1
    ORDER BY rank, due_at, id
    LIMIT ?2
)
