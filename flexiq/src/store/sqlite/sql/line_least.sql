SELECT min(place)
FROM (
    SELECT min(place) AS place
    FROM flexiq_line INDEXED BY flexiq_line_places
    WHERE name = ?1
      AND key = ?2
      AND called_until IS NULL
    UNION ALL
    SELECT min(place)
    FROM flexiq_line INDEXED BY flexiq_line_called
    WHERE name = ?1
      AND key = ?2
      AND called_until IS NOT NULL
)
