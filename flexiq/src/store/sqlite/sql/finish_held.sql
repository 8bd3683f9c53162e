SELECT lane, cancel_requested > 0, failures
FROM flexiq_jobs
WHERE id = ?1
  AND worker = ?2
  AND runs = ?3
  AND queue = ?4
  AND state = 2
