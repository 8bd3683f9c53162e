UPDATE flexiq_schedules
SET wanted_at = ?4
WHERE queue = ?1
  AND name IN (
      SELECT name
      FROM flexiq_schedules INDEXED BY flexiq_schedules_wanted
      WHERE queue = ?1 AND wanted_at <= ?2
      ORDER BY wanted_at, name
      LIMIT ?3
  )
RETURNING name, definition, is_planned, seen
