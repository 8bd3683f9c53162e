SELECT line.job, line.place, 0, named.held_until, line.max_concurrent, line.rates, line.due, line.ready_at
FROM flexiq_line AS line INDEXED BY flexiq_line_places
LEFT JOIN flexiq_named AS named ON named.name = line.name AND named.key = line.key
WHERE line.name = ?1
  AND line.key = ?2
  AND line.called_until IS NULL
ORDER BY line.place
LIMIT 1
