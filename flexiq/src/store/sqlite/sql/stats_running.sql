-- The running jobs of a queue by task, those that started first before the others, among so many leases of the queue.
SELECT lanes.task, jobs.id, jobs.worker, jobs.started_at
FROM (
    SELECT id
    FROM flexiq_jobs INDEXED BY flexiq_jobs_leased
    WHERE queue = ?1
      AND state = 2
    ORDER BY until
    LIMIT ?2
) AS leased
CROSS JOIN flexiq_jobs AS jobs ON jobs.id = leased.id
CROSS JOIN flexiq_lanes AS lanes ON lanes.lane = jobs.lane
ORDER BY jobs.started_at, jobs.id
