SELECT line.job, line.place, line.called_until IS NOT NULL, named.held_until, line.max_concurrent, line.rates, line.due, line.ready_at
FROM flexiq_line AS line
LEFT JOIN flexiq_named AS named ON named.name = line.name AND named.key = line.key
WHERE line.name = ?1
  AND line.key = ?2
  AND line.job = ?3
