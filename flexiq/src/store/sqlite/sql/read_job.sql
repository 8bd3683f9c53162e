SELECT
    jobs.id, queues.name, lanes.task, lanes.partition, jobs.state, jobs.reason, jobs.rank,
    jobs.runs, jobs.failures, jobs.deferrals, jobs.losses, jobs.last_error, jobs.cancel_requested,
    jobs.enqueued_at, jobs.due_at, jobs.expires_at, jobs.started_at, jobs.ended_at,
    progress.bytes
FROM flexiq_jobs AS jobs
JOIN flexiq_lanes AS lanes ON lanes.lane = jobs.lane
JOIN flexiq_queues AS queues ON queues.queue = jobs.queue
LEFT JOIN flexiq_bodies AS progress ON jobs.has_story AND progress.id = jobs.id AND progress.part = 2
WHERE jobs.id = ?1
