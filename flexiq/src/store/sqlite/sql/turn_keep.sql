INSERT INTO flexiq_turns (worker, queue, number, answer)
VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (worker, queue) DO UPDATE
SET number = excluded.number,
    answer = excluded.answer
