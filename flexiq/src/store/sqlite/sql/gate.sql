SELECT
    coalesce(set_max_concurrent, declared_max_concurrent),
    coalesce(set_rates, declared_rates),
    is_paused
FROM flexiq_limits
WHERE scope = ?1
  AND name = ?2
