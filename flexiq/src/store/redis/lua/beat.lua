-- beat: a worker that starts is a sign of life to the reaper of each queue.
-- ARGV  4 lease, 5 every
beat(tonumber(ARGV[4]), tonumber(ARGV[5]))
