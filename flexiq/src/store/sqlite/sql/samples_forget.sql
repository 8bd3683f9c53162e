DELETE FROM flexiq_samples
WHERE number <= (SELECT max(number) FROM flexiq_samples) - ?1
