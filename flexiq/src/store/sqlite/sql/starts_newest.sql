SELECT number, starts, at
FROM flexiq_starts
WHERE queue = ?1
  AND task = ?2
ORDER BY number DESC
LIMIT 1
