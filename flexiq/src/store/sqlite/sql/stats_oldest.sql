-- The age of the oldest ready job of a lane: the oldest of the heads, one for each priority that is there.
WITH RECURSIVE ranks (rank) AS (
    SELECT min(rank)
    FROM flexiq_jobs INDEXED BY flexiq_jobs_ready
    WHERE lane = ?1
      AND state = 1
    UNION ALL
    SELECT (
        SELECT min(rank)
        FROM flexiq_jobs INDEXED BY flexiq_jobs_ready
        WHERE lane = ?1
          AND state = 1
          AND rank > ranks.rank
    )
    FROM ranks
    WHERE ranks.rank IS NOT NULL
)
SELECT min((
    SELECT min(due_at)
    FROM flexiq_jobs INDEXED BY flexiq_jobs_ready
    WHERE lane = ?1
      AND state = 1
      AND rank = ranks.rank
))
FROM ranks
WHERE ranks.rank IS NOT NULL
