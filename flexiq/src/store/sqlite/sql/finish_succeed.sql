UPDATE flexiq_jobs
SET state = 3,
    reason = 0,
    ended_at = ?2,
    until = ?3,
    value_kind = ?4,
    value = ?5
WHERE id = ?1
