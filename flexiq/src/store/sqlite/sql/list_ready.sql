SELECT id, rank, due_at
FROM flexiq_jobs
WHERE lane = ?1
  AND state = 1
  AND (rank, due_at, id) > (?2, ?3, ?4)
ORDER BY rank, due_at, id
LIMIT ?5
