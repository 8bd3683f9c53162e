DELETE FROM flexiq_limits
WHERE scope = ?1
  AND name = ?2
  AND is_paused = 0
  AND coalesce(declared_max_concurrent, declared_rates, declared_max_pending) IS NULL
  AND coalesce(set_max_concurrent, set_rates, set_max_pending) IS NULL
