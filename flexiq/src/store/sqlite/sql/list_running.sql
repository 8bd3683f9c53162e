SELECT jobs.id, jobs.until, lanes.task
FROM flexiq_jobs AS jobs
CROSS JOIN flexiq_lanes AS lanes ON lanes.lane = jobs.lane
WHERE jobs.queue = ?1
  AND jobs.state = 2
  AND (jobs.until, jobs.id) > (?2, ?3)
ORDER BY jobs.until, jobs.id
LIMIT ?4
