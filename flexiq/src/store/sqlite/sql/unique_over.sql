DELETE FROM flexiq_unique
WHERE queue = ?1
  AND key IN (
    SELECT key
    FROM flexiq_unique INDEXED BY flexiq_unique_over
    WHERE queue = ?1
      AND is_bound = 0
      AND until <= ?2
    ORDER BY until, key
    LIMIT ?3
  )
