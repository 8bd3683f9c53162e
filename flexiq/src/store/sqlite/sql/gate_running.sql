SELECT
    coalesce((SELECT running FROM flexiq_lanes WHERE queue = ?1 AND task = ?2 AND partition = ''), 0)
    + coalesce((SELECT running FROM flexiq_partitioned WHERE queue = ?1 AND task = ?2), 0)
