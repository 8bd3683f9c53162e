-- The story of a job: how far its newest run is, what its runs have logged, and how they failed. A log and a list of
-- setbacks are entries behind each other, oldest first, as store/story.rs writes them.
-- Made when it is first needed, as life is.
local story

local function make_story()
  local HEAD, HEAD_BYTES = '>I6I4I4BBI2', 18
  -- What follows an id in the name of a field, and how many entries there are at most; their messages have together at most
  -- MOST_BYTES.
  local PROGRESS, LOG, SETBACKS = '\0', '\1', '\2'
  local MOST, MOST_BYTES, LONGEST = { [LOG] = 100, [SETBACKS] = 10 }, 16384, 4096
  local LOSS = 5
  local made = {}
  -- What is to be written: progresses, and by field what comes to a log or to setbacks.
  local progresses, fields, added = {}, {}, {}

  local function add_entries(entries, text)
    local at = 1
    while at <= #text do
      local _, run, number, _, _, length = struct.unpack(HEAD, text, at)
      local behind = at + HEAD_BYTES + length
      local newest = entries[#entries]
      -- Whoever tells the same again adds nothing.
      if not newest or run > newest.run or run == newest.run and number > newest.number then
        entries[#entries + 1] = { run = run, number = number, bytes = length, text = string.sub(text, at, behind - 1) }
      end
      at = behind
    end
  end

  -- One text with what is new of another behind it, without what is too old to be kept.
  local function join(before, text, most)
    local entries, texts, bytes = {}, {}, 0
    add_entries(entries, before)
    add_entries(entries, text)
    local from = #entries
    while from > 0 and #entries - from < most and bytes + entries[from].bytes <= MOST_BYTES do
      bytes = bytes + entries[from].bytes
      from = from - 1
    end
    for i = from + 1, #entries do
      texts[#texts + 1] = entries[i].text
    end
    return table.concat(texts)
  end

  local function add_to(field, text)
    if not added[field] then fields[#fields + 1] = field end
    added[field] = (added[field] or '') .. text
  end

  -- What a run tells: a progress behind its length, then lines.
  function made.keep_notes(id, notes)
    local length = struct.unpack('>I2', notes)
    if length > 0 then
      progresses[#progresses + 1] = id .. PROGRESS
      progresses[#progresses + 1] = string.sub(notes, 3, 2 + length)
    end
    if #notes > 2 + length then add_to(id .. LOG, string.sub(notes, 3 + length)) end
  end

  -- How a run sets its job back, of which so many failures were known before; death is 0 or the reason + 1.
  function made.keep_setback(id, run, failures, kind, death, message)
    message = string.sub(message, 1, LONGEST)
    add_to(id .. SETBACKS, struct.pack(HEAD, now, run, failures + 1, kind, death, #message) .. message)
  end

  function made.keep_loss(id, job, is_dead)
    made.keep_setback(id, job.run, job.failures, LOSS, is_dead and 4 or 0, job.worker)
  end

  function made.write()
    local written = progresses
    for i, before in ipairs(read_fields(stories, fields)) do
      written[#written + 1] = fields[i]
      written[#written + 1] = join(before or '', added[fields[i]], MOST[string.sub(fields[i], -1)])
    end
    call_in_pieces('HSET', stories, written)
    progresses, fields, added = {}, {}, {}
  end

  function made.progress_of(id)
    return redis.call('HGET', stories, id .. PROGRESS) or ''
  end

  function made.read(id)
    return redis.call('HMGET', stories, id .. LOG, id .. SETBACKS)
  end

  function made.delete(ids)
    local gone = {}
    for _, id in ipairs(ids) do
      for _, part in ipairs({ PROGRESS, LOG, SETBACKS }) do
        gone[#gone + 1] = id .. part
      end
    end
    call_in_pieces('HDEL', stories, gone)
  end

  return made
end

local function of_story()
  story = story or make_story()
  return story
end

-- Whether a run says that its job may have a story: its tail is not empty.
local function has_story(text)
  return #text > 64 + begins(lane_of(text))
end

-- The tail of a run whose job has a story: its last error, if there is one.
local function tail_with_story(tail)
  return tail == '' and '+' or tail
end
