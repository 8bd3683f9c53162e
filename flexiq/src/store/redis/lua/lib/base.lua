-- The moment, and what every script needs to call Redis.
-- ARGV  1 now ('' asks TIME)
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end

-- No moment lies beyond this: an order of rank and age then fits a number exactly.
local FAR = 2 ^ 44 - 1

-- A whole number as text: one that is handed over as a number is written with 17 digits, which costs as much as a call.
local texts_of = {}
local function text_of(number)
  local text = texts_of[number]
  if not text then
    text = string.format('%.0f', number)
    texts_of[number] = text
  end
  return text
end
local now_text = text_of(now)

-- Calls a variadic command in pieces that unpack can carry.
local function call_in_pieces(command, key, list)
  for from = 1, #list, 6000 do
    redis.call(command, key, unpack(list, from, math.min(from + 5999, #list)))
  end
end

-- Reads many fields of a hash, in pieces that unpack can carry.
local function read_fields(key, fields)
  if #fields == 0 then return {} end
  if #fields <= 6000 then return redis.call('HMGET', key, unpack(fields)) end
  local found = {}
  for from = 1, #fields, 6000 do
    local piece = redis.call('HMGET', key, unpack(fields, from, math.min(from + 5999, #fields)))
    for i = 1, #piece do
      found[from + i - 1] = piece[i]
    end
  end
  return found
end
