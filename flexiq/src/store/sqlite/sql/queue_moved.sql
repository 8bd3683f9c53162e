UPDATE flexiq_queues
SET pending   = pending + ?2,
    running   = running + ?3,
    succeeded = succeeded + ?4,
    dead      = dead + ?5,
    cancelled = cancelled + ?6,
    expired   = expired + ?7
WHERE queue = ?1
