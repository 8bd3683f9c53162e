-- leave_line: a producer waits no more; those behind it may have room now.
-- ARGV  4 producer
of_room().leave(ARGV[4])
of_room().tell()
