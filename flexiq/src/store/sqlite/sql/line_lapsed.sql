DELETE FROM flexiq_line
WHERE (name, key, job) IN (
    SELECT name, key, job
    FROM flexiq_line INDEXED BY flexiq_line_lapsing
    WHERE called_until <= ?1
      AND (?2 IS NULL OR name = ?2)
    LIMIT ?3
)
RETURNING name, key
