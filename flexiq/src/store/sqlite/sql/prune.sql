-- CAST: SQLite would prepare the statement anew for each value that it compares with a partial index's condition.
DELETE FROM flexiq_jobs
WHERE id IN (
    SELECT id
    FROM flexiq_jobs INDEXED BY flexiq_jobs_ended
    WHERE queue = ?1
      AND state = CAST(?2 AS INTEGER)
      AND state >= 3
      AND until <= ?3
    ORDER BY until
    LIMIT ?4
)
RETURNING id, lane, payload IS NULL OR (value_kind IS 1 AND value IS NULL)
