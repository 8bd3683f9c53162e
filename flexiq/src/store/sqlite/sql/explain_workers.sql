-- Those who live: who links the task and serves the queue first, then who does one of both, then the youngest.
SELECT
    workers.worker, workers.label,
    EXISTS (
        SELECT 1
        FROM flexiq_declarations AS declarations
        WHERE declarations.scope = 1 AND declarations.name = ?1 AND declarations.worker = workers.worker
    ) AS links_task,
    EXISTS (
        SELECT 1
        FROM flexiq_declarations AS declarations
        WHERE declarations.scope = 0 AND declarations.name = ?2 AND declarations.worker = workers.worker
    ) AS serves_queue,
    count(*) OVER ()
FROM flexiq_workers AS workers INDEXED BY flexiq_workers_alive
WHERE workers.is_alive = 1
  AND workers.until > ?3
ORDER BY links_task + serves_queue DESC, workers.born DESC
LIMIT ?4
