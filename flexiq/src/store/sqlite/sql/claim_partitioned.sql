-- The tasks of which something waits in partitions, each with the limits of the task.
SELECT
    partitioned.task, partitioned.ready, partitioned.startable, partitioned.served,
    coalesce(limits.set_max_concurrent, limits.declared_max_concurrent),
    coalesce(limits.set_rates, limits.declared_rates),
    coalesce(limits.is_paused, 0)
FROM flexiq_partitioned AS partitioned INDEXED BY flexiq_partitioned_waiting
LEFT JOIN flexiq_limits AS limits ON limits.scope = 1 AND limits.name = partitioned.task
WHERE partitioned.queue = ?1
  AND partitioned.ready > 0
