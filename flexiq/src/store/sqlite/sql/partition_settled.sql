UPDATE flexiq_lanes
SET turn      = ?2,
    rank      = ?3,
    due_at    = ?4,
    id        = ?5,
    startable = ?6,
    opens_at  = ?7
WHERE lane = ?1
