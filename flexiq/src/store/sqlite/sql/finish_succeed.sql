UPDATE flexiq_jobs
SET state = 3,
    ended_at = ?5,
    until = ?6,
    value_kind = ?7,
    value = ?8
WHERE id = ?1
  AND worker = ?2
  AND runs = ?3
  AND lane = ?4
  AND queue = ?9
  AND state = 2
