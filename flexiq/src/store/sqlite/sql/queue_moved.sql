UPDATE flexiq_queues
SET succeeded = succeeded + ?2,
    dead      = dead + ?3,
    cancelled = cancelled + ?4,
    expired   = expired + ?5
WHERE queue = ?1
