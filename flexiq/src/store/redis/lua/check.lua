-- check: looks whether a part of a queue goes together, and repairs it if that is wanted.
-- ARGV  4 the part: jobs, counts, partitions, turn_order, bells, producers, producer_line, or the key whose members are
--       looked at; 5 whether to repair; 6 cursor; 7 about how many are looked at; 8 up to how many members of an order
--       are counted one by one
-- Returns the next cursor, how many were looked at and their bytes, then six of each finding: its kind, task and job (''
-- for none), what was found, what should be there, and whether it was repaired
local part = ARGV[4]
local looks = {
  jobs = look_at_jobs, counts = look_at_counts, partitions = look_at_partitions, turn_order = look_at_turns,
  bells = look_at_bells, producers = look_at_producers, producer_line = look_at_producer_line,
}
if looks[part] then looks[part]() else look_at_places(part) end
if wants_repair and #findings > 0 then
  set_partitions_right()
  ring_for_moves()
  if redis.call('HEXISTS', meta, 'arrivals') == 1 then of_room().tell_all() end
  tell_keeper()
end
return { cursor, seen, bytes_seen, unpack(findings) }
