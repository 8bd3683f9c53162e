-- The index holds all of it: no job is read.
SELECT rank, due_at, id
FROM flexiq_jobs INDEXED BY flexiq_jobs_ready
WHERE lane = ?1
  AND state = 1
ORDER BY rank, due_at, id
LIMIT ?2 OFFSET ?3
