INSERT INTO flexiq_workers (worker, label, beat_at, lease_ms)
VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (worker) DO UPDATE
SET label = excluded.label,
    beat_at = excluded.beat_at,
    lease_ms = excluded.lease_ms
