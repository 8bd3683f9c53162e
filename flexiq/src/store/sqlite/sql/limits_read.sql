-- One partition has what is declared for each.
SELECT
    limits.scope, limits.name,
    coalesce(every.declared_max_concurrent, limits.declared_max_concurrent),
    coalesce(every.declared_rates, limits.declared_rates),
    coalesce(every.declared_max_pending, limits.declared_max_pending),
    limits.set_max_concurrent, limits.set_rates, limits.set_max_pending,
    limits.is_paused
FROM flexiq_limits AS limits
LEFT JOIN flexiq_limits AS every
    ON limits.scope = 3 AND every.scope = 2 AND every.name = substr(limits.name, 1, instr(limits.name, ':') - 1)
