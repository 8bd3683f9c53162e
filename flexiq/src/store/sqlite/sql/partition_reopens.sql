-- The next partitions of a task of which something waits behind a gate that was shut.
SELECT lane, partition
FROM flexiq_lanes
WHERE queue = ?1
  AND task = ?2
  AND partition > ?3
  AND ready > 0
  AND startable = 0
ORDER BY partition
LIMIT ?4
