-- The jobs that stand before one in its lane, so many at most, and whether the best of them has a higher priority.
SELECT count(*), coalesce(min(before.rank) < job.rank, 0)
FROM flexiq_jobs AS job
CROSS JOIN (
    SELECT rank
    FROM flexiq_jobs INDEXED BY flexiq_jobs_ready
    WHERE lane = ?1
      AND state = 1
      AND (rank, due_at, id) < (SELECT rank, due_at, id FROM flexiq_jobs WHERE id = ?2)
    ORDER BY rank, due_at, id
    LIMIT ?3
) AS before
WHERE job.id = ?2
