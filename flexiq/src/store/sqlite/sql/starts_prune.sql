-- Looks at the oldest rows alone: moments grow with the numbers.
DELETE FROM flexiq_starts
WHERE queue = ?1
  AND gate = ?2
  AND number IN (
    SELECT number
    FROM (
        SELECT number, at
        FROM flexiq_starts
        WHERE queue = ?1
          AND gate = ?2
        ORDER BY number
        LIMIT ?4
    )
    WHERE at <= ?3
)
