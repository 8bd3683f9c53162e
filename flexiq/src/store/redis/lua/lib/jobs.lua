-- A job: its body, which never changes, and from its first start on (or where it can expire) its run.
-- A body begins with the lane (behind the length of its task), rank and due time; then whether the moment of the enqueue is another
-- than the due time, and if so that moment; behind that comes what the producer wrote. A run ends with the same beginning
-- and a tail ('=' and its last error, '+' if it has a story alone, or nothing), so that jobs of one task that were stored in one moment and start in one moment have equal runs.
--
-- A lane is a task, or a partition of it: `task \2 length partition`. No task has such a byte, and no lane's name begins
-- another's. In a beginning, 128 on top of the task's length says that it is a partition.
local NOBODY = string.rep('\0', 16)

-- Whether any lane of this step is a partition: if not, nothing is done for partitions.
local has_partitions = false

-- The length of a body's beginning.
local function begins(lane)
  return #lane + 8
end

-- A body's beginning up to the due time.
local function beginning_of(lane, task, rank)
  return string.char(lane == task and #task or #task + 128) .. lane .. string.char(rank)
end

-- The task of a lane; then whether it is a partition.
local function task_of(lane)
  local mark = string.find(lane, '\2', 1, true)
  if not mark then return lane, false end
  has_partitions = true
  return string.sub(lane, 1, mark - 1), true
end

-- The lane whose beginning stands there.
local function lane_at(text, at)
  local length = string.byte(text, at)
  if length < 128 then return string.sub(text, at + 1, at + length) end
  has_partitions = true
  local mark = at + length - 127
  return string.sub(text, at + 1, mark + 1 + string.byte(text, mark + 1))
end

-- The place of a ready job in the one order of all lanes: lane, then priority and age, then id.
local function place(lane, rank, due, id)
  return lane .. '\0' .. struct.pack('>I7', rank * 2 ^ 44 + due) .. id
end

-- The place of all that is ready in a lane.
local function range_of(lane)
  return '[' .. lane .. '\0', '(' .. lane .. '\1'
end

-- A scheduled job says its lane and rank, so that promoting it reads no body.
local function scheduled_member(id, rank, lane)
  return id .. string.char(rank) .. lane
end

-- Whether a run is under way: `lease` is its number in four bytes, and its worker.
local function is_held(text, lease)
  return string.byte(text, 1) == 2 and string.sub(text, 5, 24) == lease
end

local function lane_of(text)
  return lane_at(text, 65)
end
