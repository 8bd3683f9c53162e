-- enqueue: stores a batch, all or none, and rings for what is ready.
-- ARGV  4 max_pending ('' for none), then two of each job: id, rank, whether due and expiry are given, task; and its body
-- Returns 'new' for a queue that is not known yet; 'clash', id and task of the job that is there; 'full', limit and
-- pending jobs; or 'stored' and a character for each job: 'n'ew or 'd'uplicate.
local HEAD = '>c16BBI6I6Bc0'
if redis.call('HEXISTS', meta, 'is_known') == 0 then return { 'new' } end
local ids, heads, answers = {}, {}, {}
for i = 5, #ARGV, 2 do
  ids[#ids + 1] = string.sub(ARGV[i], 1, 16)
  heads[#heads + 1] = ARGV[i]
end
-- An id that is new has no body to be read.
local there = read_fields(bodies, ids)
local is_new, new = {}, {}
for i, id in ipairs(ids) do
  local _, _, _, _, _, task = struct.unpack(HEAD, heads[i])
  local known = is_new[id] and is_new[id].task
  if there[i] then known = fresh_run(there[i]).task end
  if known and known ~= task then return { 'clash', id, known } end
  answers[i] = known and 'd' or 'n'
  if not known then
    is_new[id] = { index = i, task = task }
    new[#new + 1] = i
  end
end
local set = redis.call('HGET', meta, 'max_pending')
local max_pending = tonumber(set or ARGV[4])
if max_pending and #new > 0 then
  local pending = redis.call('HLEN', bodies) - redis.call('ZCARD', leases)
  for state = SUCCEEDED, EXPIRED do
    pending = pending - redis.call('ZCARD', ended_keys[state])
  end
  if pending + #new > max_pending then
    return { 'full', string.format('%.0f', max_pending), pending }
  end
end
local stored = {}
for _, i in ipairs(new) do
  local id, rank, given, due, expires, task = struct.unpack(HEAD, heads[i])
  due = moment_of(given % 2, due)
  local state = due > now and SCHEDULED or READY
  due = math.max(due, now)
  expires = given >= 2 and math.min(due + expires, FAR) or 0
  stored[#stored + 1] = id
  stored[#stored + 1] = struct.pack(BODY, now, due, expires, rank, #task, task) .. ARGV[4 + 2 * i]
  if expires > 0 then
    add(expiries, expires, id)
    change(id, new_run(state, rank, task, due, expires))
  end
  if state == READY then
    add(lanes, 0, place(task, rank, due, id))
    ready_tasks[task] = true
  else
    add(scheduled, due, scheduled_member(id, rank, task))
  end
  count(state, task, 1)
end
call_in_pieces('HSET', bodies, stored)
write_moves()
ring_for_moves()
tell_keeper()
return { 'stored', table.concat(answers) }
