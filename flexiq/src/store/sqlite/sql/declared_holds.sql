-- Changes nothing where this is what held already, or where nothing is declared and nothing was.
INSERT INTO flexiq_limits (scope, name, declared_max_concurrent, declared_rates, declared_max_pending)
SELECT ?1, ?2, ?3, ?4, ?5
WHERE coalesce(?3, ?4, ?5) IS NOT NULL
   OR EXISTS (SELECT 1 FROM flexiq_limits WHERE scope = ?1 AND name = ?2)
ON CONFLICT (scope, name) DO UPDATE
SET declared_max_concurrent = excluded.declared_max_concurrent,
    declared_rates = excluded.declared_rates,
    declared_max_pending = excluded.declared_max_pending
WHERE (declared_max_concurrent, declared_rates, declared_max_pending)
   IS NOT (excluded.declared_max_concurrent, excluded.declared_rates, excluded.declared_max_pending)
