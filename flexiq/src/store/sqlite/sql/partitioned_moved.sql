UPDATE flexiq_partitioned
SET scheduled = scheduled + ?3,
    ready     = ready + ?4,
    running   = running + ?5,
    succeeded = succeeded + ?6,
    dead      = dead + ?7,
    cancelled = cancelled + ?8,
    expired   = expired + ?9
WHERE queue = ?1
  AND task = ?2
