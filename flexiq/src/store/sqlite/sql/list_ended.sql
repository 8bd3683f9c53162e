-- The second state is for the index, which holds no others. That it says nothing has to be said, or the planner takes it
-- for the better half of the search.
SELECT jobs.id, jobs.until, lanes.task
FROM flexiq_jobs AS jobs
CROSS JOIN flexiq_lanes AS lanes ON lanes.lane = jobs.lane
WHERE jobs.queue = ?1
  AND jobs.state = ?5
  AND likelihood(jobs.state >= 3, 0.999)
  AND (jobs.until, jobs.id) < (?2, ?3)
ORDER BY jobs.until DESC, jobs.id DESC
LIMIT ?4
