SELECT queue, name
FROM flexiq_queues
WHERE name >= ?1
ORDER BY name
LIMIT 2
