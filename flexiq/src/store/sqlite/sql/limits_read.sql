SELECT
    scope, name,
    declared_max_concurrent, declared_rates, declared_max_pending,
    set_max_concurrent, set_rates, set_max_pending,
    is_paused
FROM flexiq_limits
ORDER BY scope, name
