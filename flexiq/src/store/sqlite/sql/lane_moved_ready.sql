UPDATE flexiq_lanes
SET scheduled = scheduled + ?2,
    ready     = ready + ?3,
    running   = running + ?4,
    succeeded = succeeded + ?5,
    dead      = dead + ?6,
    cancelled = cancelled + ?7,
    expired   = expired + ?8
WHERE lane = ?1
