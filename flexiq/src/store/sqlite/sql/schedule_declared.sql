SELECT schedules.queue, schedules.definition
FROM flexiq_declarations AS declarations
JOIN flexiq_workers AS workers ON workers.worker = declarations.worker
LEFT JOIN flexiq_declared_schedules AS schedules
    ON schedules.worker = declarations.worker AND schedules.name = declarations.name
WHERE declarations.scope = 1
  AND declarations.name = ?1
  AND workers.is_alive = 1
ORDER BY workers.born DESC
LIMIT 1
