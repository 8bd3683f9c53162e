-- The next partitions whose gate was open, in the order of their turns.
SELECT rank, turn, due_at, id, lane, partition, ready
FROM flexiq_lanes INDEXED BY flexiq_lanes_turns
WHERE queue = ?1
  AND task = ?2
  AND startable > 0
  AND (rank, turn, due_at, id) > (?3, ?4, ?5, ?6)
ORDER BY rank, turn, due_at, id
LIMIT ?7
