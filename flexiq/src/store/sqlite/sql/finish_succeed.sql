UPDATE flexiq_jobs
SET state = 3,
    reason = 0,
    ended_at = ?5,
    until = ?6,
    value_kind = ?7,
    value = ?8
WHERE id = ?1
  AND worker = ?2
  AND runs = ?3
  AND queue = ?4
  AND state = 2
RETURNING lane
