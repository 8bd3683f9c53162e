UPDATE flexiq_lanes
SET scheduled = scheduled + ?2,
    running   = running + ?3,
    succeeded = succeeded + ?4,
    dead      = dead + ?5,
    cancelled = cancelled + ?6,
    expired   = expired + ?7
WHERE lane = ?1
