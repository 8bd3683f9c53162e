INSERT INTO flexiq_workers (worker, label, born, since, beat_at, until)
VALUES (?1, ?2, (SELECT coalesce(max(born), 0) + 1 FROM flexiq_workers), ?3, ?3, ?4)
ON CONFLICT (worker) DO UPDATE
SET label = excluded.label,
    beat_at = excluded.beat_at,
    until = excluded.until,
    is_alive = 1
