-- fleet_name: says that a named limit is in use, so that beats look after it.
-- ARGV  2 limit
redis.call('ZADD', named, now_text, ARGV[2])
