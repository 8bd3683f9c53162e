-- The lines that no moment is kept for. While one is called, what becomes of that calls the next.
SELECT DISTINCT line.name, line.key
FROM flexiq_line AS line
LEFT JOIN flexiq_named AS named ON named.name = line.name AND named.key = line.key
WHERE line.called_until IS NULL
  AND named.opens_at IS NULL
  AND NOT EXISTS (
      SELECT 1
      FROM flexiq_line AS called
      WHERE called.name = line.name
        AND called.key = line.key
        AND called.called_until IS NOT NULL
  )
