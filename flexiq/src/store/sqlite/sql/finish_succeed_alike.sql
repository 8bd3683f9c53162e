-- As finish_succeed.sql, without a value; a place that is not used is null.
-- By its ids, and not by any index of what runs: hence the plus.
UPDATE OR FAIL flexiq_jobs
SET state = 3,
    ended_at = ?5,
    until = ?6,
    value_kind = 0,
    value = x''
WHERE id IN (
    ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19,
    ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31
)
  AND worker = ?1
  AND runs = ?2
  AND lane = ?3
  AND queue = ?4
  AND +state = 2
