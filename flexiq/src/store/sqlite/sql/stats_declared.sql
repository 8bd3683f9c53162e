SELECT scope, name, max_concurrent, rates, max_pending
FROM flexiq_declarations INDEXED BY flexiq_declarations_of_worker
WHERE worker = ?1
