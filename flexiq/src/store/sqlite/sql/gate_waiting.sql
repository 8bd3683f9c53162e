SELECT 1
FROM flexiq_lanes INDEXED BY flexiq_lanes_waiting
WHERE queue = ?1
  AND task = ?2
  AND ready > 0
LIMIT 1
