SELECT
    lanes.queue, queues.name, lanes.task, lanes.partition,
    lanes.scheduled, lanes.ready, lanes.running, lanes.succeeded, lanes.dead, lanes.cancelled, lanes.expired,
    coalesce(jobs.scheduled, 0), coalesce(jobs.ready, 0), coalesce(jobs.running, 0), coalesce(jobs.succeeded, 0),
    coalesce(jobs.dead, 0), coalesce(jobs.cancelled, 0), coalesce(jobs.expired, 0)
FROM flexiq_lanes AS lanes
LEFT JOIN flexiq_queues AS queues ON queues.queue = lanes.queue
LEFT JOIN (
    SELECT
        lane,
        sum(state = 0) AS scheduled, sum(state = 1) AS ready, sum(state = 2) AS running, sum(state = 3) AS succeeded,
        sum(state = 4) AS dead, sum(state = 5) AS cancelled, sum(state = 6) AS expired
    FROM flexiq_jobs
    GROUP BY lane
) AS jobs ON jobs.lane = lanes.lane
WHERE (lanes.scheduled, lanes.ready, lanes.running, lanes.succeeded, lanes.dead, lanes.cancelled, lanes.expired)
    <> (
        coalesce(jobs.scheduled, 0), coalesce(jobs.ready, 0), coalesce(jobs.running, 0), coalesce(jobs.succeeded, 0),
        coalesce(jobs.dead, 0), coalesce(jobs.cancelled, 0), coalesce(jobs.expired, 0)
    )
LIMIT ?1
