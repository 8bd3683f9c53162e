-- The keys of the whole store, and what workers declare. No script touches these and a queue.
-- KEYS  those of keys.rs, in its order
-- ARGV  now; then the script's own from 2
local meta, queues, tasks, workers, declared, limits, named, reports, crons, samples = unpack(KEYS)
