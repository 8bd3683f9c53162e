SELECT id, lane, lapse, losses, max_losses, cancel_requested > 0, runs, failures, worker
FROM flexiq_jobs INDEXED BY flexiq_jobs_leased
WHERE queue = ?1
  AND state = 2
  AND until <= ?2
ORDER BY until
LIMIT ?3
