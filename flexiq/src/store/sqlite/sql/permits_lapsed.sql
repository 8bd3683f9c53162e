DELETE FROM flexiq_permits
WHERE (name, key, job, run) IN (
    SELECT name, key, job, run
    FROM flexiq_permits INDEXED BY flexiq_permits_lapsing
    WHERE until <= ?1
      AND (?2 IS NULL OR name = ?2)
    LIMIT ?3
)
RETURNING name, key
