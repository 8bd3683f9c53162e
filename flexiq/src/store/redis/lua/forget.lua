-- forget: a worker has gone; what it took and did not use goes to another.
-- ARGV  4 worker
redis.call('HDEL', turns, ARGV[4])
empty_hands(ARGV[4])
tell_keeper()
