SELECT 1
FROM flexiq_jobs INDEXED BY flexiq_jobs_called
WHERE worker = ?1
  AND state = 2
  AND cancel_requested = 1
LIMIT 1
