SELECT jobs.id, jobs.due_at, lanes.task
FROM flexiq_jobs AS jobs
CROSS JOIN flexiq_lanes AS lanes ON lanes.lane = jobs.lane
WHERE jobs.queue = ?1
  AND jobs.state = 0
  AND (jobs.due_at, jobs.id) > (?2, ?3)
ORDER BY jobs.due_at, jobs.id
LIMIT ?4
