INSERT OR REPLACE INTO flexiq_declarations (scope, name, worker, max_concurrent, rates, max_pending)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
