SELECT lane, task, partition, ready
FROM flexiq_lanes INDEXED BY flexiq_lanes_waiting
WHERE queue = ?1
  AND ready > 0
ORDER BY task
