-- One that has lapsed is asked only where nobody else lives: it may have been cut off, and still be the one that runs.
SELECT declarations.max_concurrent, declarations.rates, declarations.max_pending
FROM flexiq_declarations AS declarations
JOIN flexiq_workers AS workers ON workers.worker = declarations.worker
WHERE declarations.scope = ?1
  AND declarations.name = ?2
ORDER BY workers.is_alive DESC, workers.born DESC
LIMIT 1
