-- heads: the lanes that are open, as a heap: the one whose head is best stands first. Made where more than one lane is open.
local function make_heads()
  -- The next place of a lane, read in chunks; false if there is none.
  local function advance(lane)
    lane.at = lane.at + 1
    if lane.at > #lane.places then
      if lane.read >= lane.ready then return false end
      local low, high = range_of(lane.task.name)
      lane.places = redis.call('ZRANGEBYLEX', lanes, low, high, 'LIMIT', text_of(lane.read), text_of(lane.chunk))
      lane.read = lane.read + #lane.places
      lane.chunk = lane.chunk * 4
      lane.at = 1
      if #lane.places == 0 then return false end
    end
    -- As numbers, because the language compares strings by the locale: rank and age, then the id.
    lane.order, lane.first, lane.second, lane.third =
      struct.unpack('>I7I6I6I4', lane.places[lane.at], #lane.task.name + 2)
    return true
  end

  local function goes_first(a, b)
    if a.order ~= b.order then return a.order < b.order end
    if a.first ~= b.first then return a.first < b.first end
    if a.second ~= b.second then return a.second < b.second end
    return a.third < b.third
  end

  -- A heap of lanes: the one whose head is best stands first.
  local function push(heap, lane)
    local at = #heap + 1
    heap[at] = lane
    while at > 1 do
      local above = math.floor(at / 2)
      if not goes_first(heap[at], heap[above]) then return end
      heap[at], heap[above] = heap[above], heap[at]
      at = above
    end
  end

  -- Lets the first sink to its place: the better of the two below rises until it goes before both.
  local function sift_down(heap)
    local lane, last, at = heap[1], #heap, 1
    local below = 2
    while below <= last do
      local least, other = heap[below], heap[below + 1]
      if other and (other.order < least.order or other.order == least.order and goes_first(other, least)) then
        least, below = other, below + 1
      end
      if lane.order < least.order or lane.order == least.order and goes_first(lane, least) then break end
      heap[at], at = least, below
      below = 2 * at
    end
    heap[at] = lane
  end

  local function drop_first(heap)
    heap[1] = heap[#heap]
    heap[#heap] = nil
    if #heap > 1 then sift_down(heap) end
  end

  return { advance = advance, push = push, sift_down = sift_down, drop_first = drop_first }
end
