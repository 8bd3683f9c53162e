-- The running jobs of a queue, of a task or of a partition, those that started first before the others, among so many leases of
-- the queue.
SELECT jobs.id, jobs.worker, jobs.started_at, lanes.task
FROM (
    SELECT id
    FROM flexiq_jobs INDEXED BY flexiq_jobs_leased
    WHERE queue = ?1
      AND state = 2
    ORDER BY until
    LIMIT ?4
) AS leased
CROSS JOIN flexiq_jobs AS jobs ON jobs.id = leased.id
CROSS JOIN flexiq_lanes AS lanes ON lanes.lane = jobs.lane
WHERE (?2 IS NULL OR lanes.task = ?2)
  AND (?3 IS NULL OR lanes.partition = ?3)
ORDER BY jobs.started_at, jobs.id
LIMIT ?5
