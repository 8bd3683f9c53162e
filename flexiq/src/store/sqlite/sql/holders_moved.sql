UPDATE flexiq_holders
SET running = running + ?2
WHERE (queue, task) = (SELECT queue, task FROM flexiq_lanes WHERE lane = ?1)
