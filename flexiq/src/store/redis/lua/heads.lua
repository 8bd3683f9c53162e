-- heads: the lanes that are open, in a line: the one whose head is best stands first. Made where more than one lane is open.
local function make_heads()
  -- What goes before, in turn: rank and age, then the id. As numbers, because the language compares strings by the locale.
  local PARTS = { 'order', 'first', 'second', 'third' }

  -- The next place of a lane, read in chunks; false if there is none.
  local function advance(lane)
    local at, places = lane.at + 1, lane.places
    if at > #places then
      if lane.read >= lane.ready then return false end
      local low, high = range_of(lane.task.name)
      places = redis.call('ZRANGEBYLEX', lanes, low, high, 'LIMIT', text_of(lane.read), text_of(lane.chunk))
      at, lane.places, lane.read, lane.chunk = 1, places, lane.read + #places, lane.chunk * 4
      if #places == 0 then return false end
    end
    lane.at = at
    lane.order, lane.first, lane.second, lane.third = struct.unpack('>I7I6I6I4', places[at], #lane.task.name + 2)
    return true
  end

  -- A lane of which nothing is read; all that it will have is made room for at once.
  local function lane_of_task(task, ready, chunk)
    return {
      task = task, ready = ready, read = 0, chunk = chunk, places = {}, at = 0, advance = advance, order = 0, first = 0,
      second = 0, third = 0,
    }
  end

  local function goes_first(a, b)
    if a.order ~= b.order then return a.order < b.order end
    if a.first ~= b.first then return a.first < b.first end
    if a.second ~= b.second then return a.second < b.second end
    return a.third < b.third
  end

  -- Puts lanes into a line, by one part after the other: plain numbers are sorted fast.
  local function line_up(unsorted, line, part)
    local name, keys, by_key = PARTS[part], {}, {}
    for _, lane in ipairs(unsorted) do
      local key = lane[name]
      local alike = by_key[key]
      if alike then
        alike[#alike + 1] = lane
      else
        by_key[key], keys[#keys + 1] = { lane }, key
      end
    end
    table.sort(keys)
    for _, key in ipairs(keys) do
      local alike = by_key[key]
      if #alike == 1 or part == #PARTS then line[#line + 1] = alike[1] else line_up(alike, line, part + 1) end
    end
  end

  -- Puts a lane back into its place behind `from`: mostly that is the last.
  local function put_back(line, from, lane)
    local last = #line
    if last < from or goes_first(line[last], lane) then
      line[last + 1] = lane
      return
    end
    local low, high = from, last
    while low < high do
      local middle = math.floor((low + high) / 2)
      if goes_first(line[middle], lane) then low = middle + 1 else high = middle end
    end
    table.insert(line, low, lane)
  end

  return { advance = advance, lane = lane_of_task, line_up = line_up, put_back = put_back }
end
