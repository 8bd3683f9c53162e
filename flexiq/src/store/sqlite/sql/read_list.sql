WHERE (?1 IS NULL OR queues.name = ?1)
  AND (?2 IS NULL OR lanes.task = ?2)
  AND (?3 IS NULL OR jobs.state = ?3)
  AND jobs.id > ?4
ORDER BY jobs.id
LIMIT ?5
