SELECT number, starts, at, until
FROM flexiq_starts
WHERE queue = ?1
  AND gate = ?2
ORDER BY number DESC
LIMIT 1
