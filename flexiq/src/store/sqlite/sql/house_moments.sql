SELECT
    (SELECT min(due_at) FROM flexiq_jobs INDEXED BY flexiq_jobs_scheduled WHERE queue = ?1 AND state = 0),
    (
        SELECT min(expires_at)
        FROM flexiq_jobs INDEXED BY flexiq_jobs_expiring
        WHERE queue = ?1 AND state <= 1 AND expires_at IS NOT NULL
    ),
    (SELECT min(until) FROM flexiq_jobs INDEXED BY flexiq_jobs_leased WHERE queue = ?1 AND state = 2),
    (SELECT min(opens_at) FROM flexiq_lanes INDEXED BY flexiq_lanes_opening WHERE queue = ?1 AND opens_at IS NOT NULL),
    (SELECT min(until) FROM flexiq_holds WHERE queue = ?1),
    (
        SELECT min(wanted_at)
        FROM flexiq_schedules INDEXED BY flexiq_schedules_wanted
        WHERE queue = ?1 AND wanted_at IS NOT NULL
    ),
    EXISTS (SELECT 1 FROM flexiq_partitioned INDEXED BY flexiq_partitioned_reopening WHERE queue = ?1 AND reopens IS NOT NULL)
