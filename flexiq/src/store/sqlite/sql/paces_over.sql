DELETE FROM flexiq_paces
WHERE queue = ?1
  AND gate = ?2
  AND NOT EXISTS (SELECT 1 FROM flexiq_starts WHERE queue = ?1 AND gate = ?2)
