-- The partitions of a task of which something is ready, those with the oldest heads.
SELECT lane
FROM flexiq_lanes INDEXED BY flexiq_lanes_heads
WHERE queue = ?1
  AND task = ?2
  AND due_at IS NOT NULL
ORDER BY due_at
LIMIT ?3
