UPDATE flexiq_workers
SET beat_at = ?2,
    until = ?3,
    report = coalesce(?4, report)
WHERE worker = ?1
RETURNING is_alive
