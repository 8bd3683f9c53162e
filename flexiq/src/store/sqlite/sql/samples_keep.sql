INSERT INTO flexiq_samples (number, at, text)
VALUES ((SELECT coalesce(max(number), 0) + 1 FROM flexiq_samples), ?1, ?2)
