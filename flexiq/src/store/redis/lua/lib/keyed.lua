-- Whether any job was stored with a unique key, and what is done with keys where jobs end: one look where there are none.
local is_any_keyed
local freed = 0

local function has_keyed()
  if is_any_keyed == nil then is_any_keyed = redis.call('EXISTS', KEYS[35]) == 1 end
  return is_any_keyed
end

-- Frees the keys of all jobs that this script has ended since this was done last: before they may be pruned.
local function free_keys()
  if #ended == freed or not has_keyed() then return end
  local ids = {}
  for i = freed + 1, #ended do
    ids[#ids + 1] = ended[i]
  end
  freed = #ended
  of_keys().free(ids, false)
end
