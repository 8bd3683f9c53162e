-- The very jobs that claim_job.sql has read in this transaction; a place that is not used is null.
-- OR FAIL, because whoever calls it undoes everything anyway: SQLite need keep no journal of the statement.
UPDATE OR FAIL flexiq_jobs
SET state = 2,
    runs = runs + 1,
    worker = ?1,
    started_at = ?2,
    until = ?3,
    max_losses = ?4,
    lapse = 0,
    cancel_requested = 0
WHERE id IN (
    ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
    ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29
)
