-- heads: the lanes that are open, in a line: the one whose head is best stands first. Made where more than one lane is open.
-- A lane is a list, which is made faster than a table with names. It begins with what its head is compared by, one after the
-- other: rank and age, then the id, as numbers, because the language compares strings by the locale. There follow its task,
-- the places that were read last, at which of them it is, and how many were read.
local ORDER, FIRST, SECOND, THIRD, TASK, PLACES, AT, READ = 1, 2, 3, 4, 5, 6, 7, 8

local function make_heads()
  local PLACE, parse = '>I7I6I6I4', struct.unpack

  -- The lanes of tasks, each at its first place, of each of which so many are read, or what it is free to start.
  local function lanes_of(tasks, jobs)
    local found, at, call, of_many = {}, 0, redis.call, text_of(jobs)
    for i = 1, #tasks do
      local task = tasks[i]
      if task.ready > 0 then
        local name = task.name
        local most = task.free < jobs and text_of(task.free) or of_many
        local places = call('ZRANGEBYLEX', lanes, '[' .. name .. '\0', '(' .. name .. '\1', 'LIMIT', '0', most)
        if places[1] then
          local order, first, second, third = parse(PLACE, places[1], #name + 2)
          at = at + 1
          found[at] = { order, first, second, third, task, places, 1, #places }
        end
      end
    end
    return found
  end

  -- Goes to the next place of a lane; false if there is none, or if it does not go before the head of `bound`, where that is
  -- given. What was read of it before was taken.
  local function advance(lane, bound)
    local at, task = lane[AT] + 1, lane[TASK]
    if not lane[PLACES][at] then
      if task.ready == 0 then return false end
      local low, high = range_of(task.name)
      local places = redis.call('ZRANGEBYLEX', lanes, low, high, 'LIMIT', text_of(lane[READ]), text_of(lane[READ] * 4))
      if #places == 0 then return false end
      at, lane[PLACES], lane[READ] = 1, places, lane[READ] + #places
    end
    local order, first, second, third = parse(PLACE, lane[PLACES][at], #task.name + 2)
    if bound and (order > bound[ORDER] or order == bound[ORDER] and (first > bound[FIRST] or first == bound[FIRST]
      and (second > bound[SECOND] or second == bound[SECOND] and third > bound[THIRD]))) then
      return false
    end
    lane[AT], lane[ORDER], lane[FIRST], lane[SECOND], lane[THIRD] = at, order, first, second, third
    return true
  end

  local function goes_first(a, b)
    if a[ORDER] ~= b[ORDER] then return a[ORDER] < b[ORDER] end
    if a[FIRST] ~= b[FIRST] then return a[FIRST] < b[FIRST] end
    if a[SECOND] ~= b[SECOND] then return a[SECOND] < b[SECOND] end
    return a[THIRD] < b[THIRD]
  end

  -- Whether a part of all lanes is one number.
  local function are_alike(unsorted, part)
    for i = 2, #unsorted do
      if unsorted[i][part] ~= unsorted[1][part] then return false end
    end
    return true
  end

  -- Puts lanes into a line behind its first so many, by one part after the other: plain numbers are sorted fast. Answers how
  -- many stand there.
  local function line_up(unsorted, line, length, part)
    while part < THIRD and are_alike(unsorted, part) do
      part = part + 1
    end
    local keys, different, by_key, alike = {}, 0, {}, {}
    for i = 1, #unsorted do
      local lane = unsorted[i]
      local key = lane[part]
      local other = by_key[key]
      if not other then
        different = different + 1
        by_key[key], keys[different] = lane, key
      elseif alike[key] then
        alike[key][#alike[key] + 1] = lane
      else
        alike[key] = { other, lane }
      end
    end
    table.sort(keys)
    for i = 1, different do
      local key = keys[i]
      if alike[key] then
        length = line_up(alike[key], line, length, part + 1)
      else
        length = length + 1
        line[length] = by_key[key]
      end
    end
    return length
  end

  -- Puts a lane back into its place in a line from `from` to `to`: mostly that is behind the last.
  local function put_back(line, from, to, lane)
    local last = line[to]
    if from > to or last[ORDER] < lane[ORDER] or goes_first(last, lane) then
      line[to + 1] = lane
      return
    end
    local low, high = from, to
    while low < high do
      local middle = math.floor((low + high) / 2)
      if goes_first(line[middle], lane) then low = middle + 1 else high = middle end
    end
    table.insert(line, low, lane)
  end

  return { advance = advance, goes_first = goes_first, of_tasks = lanes_of, line_up = line_up, put_back = put_back }
end
