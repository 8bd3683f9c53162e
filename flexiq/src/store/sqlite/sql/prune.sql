DELETE FROM flexiq_jobs
WHERE id IN (
    SELECT id
    FROM flexiq_jobs INDEXED BY flexiq_jobs_ended
    WHERE queue = ?1
      AND state = ?2
      AND state >= 3
      AND until <= ?3
      AND ended_at < ?5
    ORDER BY until
    LIMIT ?4
)
RETURNING id, lane, payload IS NULL OR (value_kind IS 1 AND value IS NULL) OR has_story
