-- What unique_free.sql has left: keys that time holds, with which these jobs have nothing to do any more.
UPDATE flexiq_unique
SET is_bound = 0
WHERE job IN (
    ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,
    ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27
)
  AND is_bound = 1
  AND release >= ?2
  AND until > ?1
