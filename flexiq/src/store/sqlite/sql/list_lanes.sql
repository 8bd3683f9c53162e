SELECT lane, task, partition, ready
FROM flexiq_lanes
WHERE queue = ?1
  AND (task, partition) >= (?2, ?3)
ORDER BY task, partition
LIMIT ?4
