INSERT INTO flexiq_starts (queue, gate, number, starts, at, until)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
