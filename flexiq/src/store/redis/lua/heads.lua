-- heads: the lanes that are open, in a line: the one whose head is best stands first. Made where more than one lane is open.
local function make_heads()
  -- What goes before, in turn: rank and age, then the id. As numbers, because the language compares strings by the locale.
  local PARTS, PLACE = { 'order', 'first', 'second', 'third' }, '>I7I6I6I4'

  -- The lanes of tasks, each at its first place, of each of which so many are read.
  local function lanes_of(tasks, jobs)
    local found, at, call, parse, of_many = {}, 0, redis.call, struct.unpack, text_of(jobs)
    for i = 1, #tasks do
      local task = tasks[i]
      if task.ready > 0 then
        local name = task.name
        local places = call('ZRANGEBYLEX', lanes, '[' .. name .. '\0', '(' .. name .. '\1', 'LIMIT', '0', of_many)
        if places[1] then
          local order, first, second, third = parse(PLACE, places[1], #task.name + 2)
          at = at + 1
          found[at] = {
            task = task, places = places, at = 1, read = #places, order = order, first = first, second = second,
            third = third,
          }
        end
      end
    end
    return found
  end

  -- Goes to the next place of a lane; false if there is none, or if it does not go before the head of `bound`, where that is
  -- given. What was read of it before was taken.
  local function advance(lane, bound)
    local at, task = lane.at + 1, lane.task
    if not lane.places[at] then
      if task.ready == 0 then return false end
      local low, high = range_of(task.name)
      local places = redis.call('ZRANGEBYLEX', lanes, low, high, 'LIMIT', text_of(lane.read), text_of(lane.read * 4))
      if #places == 0 then return false end
      at, lane.places, lane.read = 1, places, lane.read + #places
    end
    local order, first, second, third = struct.unpack(PLACE, lane.places[at], #task.name + 2)
    if bound and (order > bound.order or order == bound.order and (first > bound.first or first == bound.first
      and (second > bound.second or second == bound.second and third > bound.third))) then
      return false
    end
    lane.at, lane.order, lane.first, lane.second, lane.third = at, order, first, second, third
    return true
  end

  local function goes_first(a, b)
    if a.order ~= b.order then return a.order < b.order end
    if a.first ~= b.first then return a.first < b.first end
    if a.second ~= b.second then return a.second < b.second end
    return a.third < b.third
  end

  -- Whether a part of all lanes is one number.
  local function are_alike(unsorted, name)
    for i = 2, #unsorted do
      if unsorted[i][name] ~= unsorted[1][name] then return false end
    end
    return true
  end

  -- Puts lanes into a line, by one part after the other: plain numbers are sorted fast.
  local function line_up(unsorted, line, part)
    while part < #PARTS and are_alike(unsorted, PARTS[part]) do
      part = part + 1
    end
    local name, keys, by_key, alike = PARTS[part], {}, {}, {}
    for i = 1, #unsorted do
      local lane = unsorted[i]
      local key = lane[name]
      if alike[key] then
        alike[key][#alike[key] + 1] = lane
      elseif by_key[key] then
        alike[key] = { by_key[key], lane }
      else
        by_key[key], keys[#keys + 1] = lane, key
      end
    end
    table.sort(keys)
    for i = 1, #keys do
      local key = keys[i]
      if alike[key] then line_up(alike[key], line, part + 1) else line[#line + 1] = by_key[key] end
    end
    return line
  end

  -- Puts a lane back into its place in a line from `from` to `to`: mostly that is behind the last.
  local function put_back(line, from, to, lane)
    local last = line[to]
    if from > to or last.order < lane.order or goes_first(last, lane) then
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

  return { advance = advance, of_tasks = lanes_of, line_up = line_up, put_back = put_back }
end
