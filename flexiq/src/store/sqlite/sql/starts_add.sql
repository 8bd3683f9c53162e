INSERT INTO flexiq_starts (queue, task, number, starts, at)
VALUES (?1, ?2, ?3, ?4, ?5)
