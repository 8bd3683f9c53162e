SELECT producer, jobs, max_pending
FROM flexiq_producers
WHERE queue = ?1 AND gate = ?2 AND until > ?3
ORDER BY number
LIMIT ?4
