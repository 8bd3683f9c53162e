-- Those who live, the oldest first.
SELECT worker, label, since, beat_at, report
FROM flexiq_workers INDEXED BY flexiq_workers_alive
WHERE is_alive = 1
  AND until > ?1
ORDER BY born
