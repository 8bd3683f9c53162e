DELETE FROM flexiq_starts
WHERE queue = ?1
  AND task = ?2
  AND number IN (
    SELECT number
    FROM flexiq_starts
    WHERE queue = ?1
      AND task = ?2
      AND at <= ?3
    ORDER BY number
    LIMIT ?4
)
