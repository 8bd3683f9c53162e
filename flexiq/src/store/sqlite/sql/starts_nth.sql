-- The row that holds this number: the last that begins at or before it.
SELECT at
FROM flexiq_starts
WHERE queue = ?1
  AND gate = ?2
  AND number <= ?3
ORDER BY number DESC
LIMIT 1
