-- What holds for one partition: what was set for it, or else what is declared for each.
SELECT
    coalesce(one.set_max_concurrent, every.declared_max_concurrent),
    coalesce(one.set_rates, every.declared_rates),
    coalesce(one.is_paused, 0),
    (SELECT until FROM flexiq_holds WHERE queue = ?1 AND gate = ?3)
FROM (SELECT 1)
LEFT JOIN flexiq_limits AS one ON one.scope = 3 AND one.name = ?3
LEFT JOIN flexiq_limits AS every ON every.scope = 2 AND every.name = ?2
