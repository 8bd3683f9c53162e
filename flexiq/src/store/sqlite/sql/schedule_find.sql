SELECT definition, is_set, is_paused, is_planned, seen, last, last_skipped, wanted_at, asleep_since
FROM flexiq_schedules
WHERE queue = ?1 AND name = ?2
