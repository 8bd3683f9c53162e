SELECT count(*), count(nullif(rates, ''))
FROM flexiq_line INDEXED BY flexiq_line_called
WHERE name = ?1
  AND key = ?2
  AND called_until IS NOT NULL
