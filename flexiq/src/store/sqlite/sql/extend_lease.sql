UPDATE flexiq_jobs
SET until = ?4,
    lapse = ?5
WHERE id = ?1
  AND worker = ?2
  AND runs = ?3
  AND state = 2
RETURNING cancel_requested
