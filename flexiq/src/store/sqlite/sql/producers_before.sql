SELECT coalesce(sum(jobs), 0)
FROM flexiq_producers
WHERE queue = ?1 AND gate = ?2 AND until > ?3
  AND number < coalesce(
      (SELECT number FROM flexiq_producers WHERE producer = ?4 AND queue = ?1 AND gate = ?2),
      9223372036854775807
  )
