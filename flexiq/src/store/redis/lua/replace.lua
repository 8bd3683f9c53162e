-- replace: calls with unique keys, and what they do to the jobs that have those, instead of storing one of their own. A part of
-- an enqueue, which is made where there are such calls.
local calls
local keyed = tonumber(ARGV[#ARGV])
if keyed > 0 then
  local KEEP, POSTPONE = 0, 2
  -- Of jobs with a unique key, by index: the call; then by key, who has it, and whether anything stands under it.
  local by_index, owners, stands = of_keys().read_calls(#ARGV - keyed, keyed)
  -- The jobs that are stored now and take keys, their calls and lanes; and the calls that replace something, in their order.
  local ids, taking, new_lanes, replacing = {}, {}, {}, {}
  local made = {}

  -- The lane of a job that is pending; nil if it is not.
  local function pending_lane(id, of_batch)
    local lane = new_lanes[id] or of_batch.lanes[id]
    if lane then return lane end
    local job = of_life().find_job(id)
    return job and job.state <= READY and job.lane or nil
  end

  -- What is known of a batch, of which nothing is stored yet.
  function made.begin()
    return { owners = {}, lanes = {}, replacing = {}, told = {} }
  end

  -- What becomes of a job: nothing if no other has its key; else the 'k'ey is taken, or arguments are 'r'eplaced, or it is
  -- 'misplaced' beside the job that has the key.
  function made.look(index, id, group, tail, of_batch)
    local call = by_index[index]
    if not call then return nil end
    local owner = owners[call.key] or of_batch.owners[call.key]
    if not owner then
      of_batch.owners[call.key], of_batch.lanes[id] = id, group.lane
      return nil
    end
    of_batch.told[#of_batch.told + 1] = owner
    local lane = call.on_duplicate ~= KEEP and pending_lane(owner, of_batch)
    if not lane then return 'k' end
    if lane ~= group.lane then return 'misplaced', owner end
    of_batch.replacing[#of_batch.replacing + 1] = {
      owner = owner, tail = tail, postpones = call.on_duplicate == POSTPONE, due = group.due_at, expires = group.expires_at,
    }
    return 'r'
  end

  -- A batch is stored; answers the jobs that have the keys of others.
  function made.keep(of_batch)
    for _, call in ipairs(of_batch.replacing) do
      replacing[#replacing + 1] = call
    end
    return table.concat(of_batch.told)
  end

  -- A job is stored.
  function made.store(index, id, lane)
    local call = by_index[index]
    if not call then return end
    ids[#ids + 1], taking[#taking + 1] = id, call
    owners[call.key], new_lanes[id] = id, lane
  end

  -- Gives a job that is pending what a call says: `tail` of its body; and where it waits for the due time with which it was
  -- stored, due time and expiry, if the call postpones.
  local function replace(call)
    local jobs, id = of_life(), call.owner
    local job, body = jobs.find_job(id), redis.call('HGET', bodies, id)
    local mark = begins(job.lane) + 1
    local head = string.sub(body, 1, string.byte(body, mark) == 1 and mark + 6 or mark)
    redis.call('HSET', bodies, id, head .. call.tail)
    if not call.postpones or job.state ~= SCHEDULED or job.reason ~= 0 then return end
    if job.expires > 0 then remove(expiries, id) end
    job.due, job.expires = math.max(call.due, now), call.expires
    jobs.make_pending(id, job, call.due > now and SCHEDULED or READY)
    if job.expires > 0 then add(expiries, job.expires, id) end
    write_moves()
  end

  -- Writes what was gathered, behind the jobs.
  function made.write()
    of_keys().take(ids, taking, stands)
    for _, call in ipairs(replacing) do
      replace(call)
    end
  end

  calls = made
end
