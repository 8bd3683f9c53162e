-- Keys that these jobs are bound to and time does not hold; a place that is not used is null.
DELETE FROM flexiq_unique
WHERE job IN (
    ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,
    ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27
)
  AND is_bound = 1
  AND release >= ?2
  AND (until IS NULL OR until <= ?1)
