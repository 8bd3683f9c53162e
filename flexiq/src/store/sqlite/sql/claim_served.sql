UPDATE flexiq_partitioned
SET served = ?3
WHERE queue = ?1
  AND task = ?2
