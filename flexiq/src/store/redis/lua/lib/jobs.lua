-- A job: its body, which never changes, and from its first start on (or where it can expire) its run.
-- A body begins with the task (behind its length), rank and due time; then whether the moment of the enqueue is another
-- than the due time, and if so that moment; behind that comes what the producer wrote. A run ends with the same beginning
-- and its last error, so that jobs of one task that were stored in one moment and start in one moment have equal runs.
local NOBODY = string.rep('\0', 16)

-- The length of a body's beginning.
local function begins(task)
  return #task + 8
end

-- The place of a ready job in the one order of all lanes: task, then priority and age, then id.
local function place(task, rank, due, id)
  return task .. '\0' .. struct.pack('>I7', rank * 2 ^ 44 + due) .. id
end

-- A scheduled job says its task and rank, so that promoting it reads no body.
local function scheduled_member(id, rank, task)
  return id .. string.char(rank) .. task
end

-- Whether a run is under way: `lease` is its number in four bytes, and its worker.
local function is_held(text, lease)
  return string.byte(text, 1) == 2 and string.sub(text, 5, 24) == lease
end

local function task_of(text)
  return string.sub(text, 66, 65 + string.byte(text, 65))
end
