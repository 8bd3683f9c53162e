SELECT
    definition, is_set, is_paused, is_planned, seen, last, last_skipped, wanted_at, asleep_since,
    queues.name, schedules.name
FROM flexiq_schedules AS schedules
JOIN flexiq_queues AS queues ON queues.queue = schedules.queue
ORDER BY schedules.name, queues.name
