-- Gates of partitions: the others prune their logs as they grow.
SELECT DISTINCT queue, gate
FROM (
    SELECT queue, gate
    FROM flexiq_starts INDEXED BY flexiq_starts_over
    WHERE until <= ?1
    ORDER BY until
    LIMIT ?2
)
