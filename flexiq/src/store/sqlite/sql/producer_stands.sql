INSERT INTO flexiq_producers (producer, queue, gate, jobs, max_pending, until)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (producer) DO UPDATE
SET jobs = excluded.jobs, max_pending = excluded.max_pending, until = excluded.until
