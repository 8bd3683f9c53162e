-- One row of each kind: min and max would look at all.
SELECT max(place)
FROM (
    SELECT place
    FROM (
        SELECT place
        FROM flexiq_line INDEXED BY flexiq_line_places
        WHERE name = ?1
          AND key = ?2
          AND called_until IS NULL
        ORDER BY place DESC
        LIMIT 1
    )
    UNION ALL
    SELECT place
    FROM flexiq_line INDEXED BY flexiq_line_called
    WHERE name = ?1
      AND key = ?2
      AND called_until IS NOT NULL
)
