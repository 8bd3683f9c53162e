INSERT OR REPLACE INTO flexiq_schedules (
    queue, name, definition, is_set, is_paused, is_planned, seen, last, last_skipped, wanted_at, asleep_since
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
