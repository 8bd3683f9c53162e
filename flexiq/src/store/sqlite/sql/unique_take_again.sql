INSERT INTO flexiq_unique (queue, key, job, release, is_bound)
VALUES (?1, ?2, ?3, ?4, 1)
ON CONFLICT (queue, key) DO UPDATE
SET until = CASE WHEN job = excluded.job THEN until END,
    job = excluded.job,
    release = excluded.release,
    is_bound = 1
