UPDATE flexiq_partitioned
SET running = running + ?3,
    ready   = ready + ?4
WHERE queue = ?1
  AND task = ?2
