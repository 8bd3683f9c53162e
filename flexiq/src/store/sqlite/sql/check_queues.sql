SELECT
    queues.queue, queues.name, NULL, '',
    queues.pending, queues.running, queues.succeeded, queues.dead, queues.cancelled, queues.expired,
    coalesce(jobs.pending, 0), coalesce(jobs.running, 0), coalesce(jobs.succeeded, 0), coalesce(jobs.dead, 0),
    coalesce(jobs.cancelled, 0), coalesce(jobs.expired, 0)
FROM flexiq_queues AS queues
LEFT JOIN (
    SELECT
        queue,
        sum(state <= 1) AS pending, sum(state = 2) AS running, sum(state = 3) AS succeeded, sum(state = 4) AS dead,
        sum(state = 5) AS cancelled, sum(state = 6) AS expired
    FROM flexiq_jobs
    GROUP BY queue
) AS jobs ON jobs.queue = queues.queue
WHERE (queues.pending, queues.running, queues.succeeded, queues.dead, queues.cancelled, queues.expired)
    <> (
        coalesce(jobs.pending, 0), coalesce(jobs.running, 0), coalesce(jobs.succeeded, 0), coalesce(jobs.dead, 0),
        coalesce(jobs.cancelled, 0), coalesce(jobs.expired, 0)
    )
LIMIT ?1
