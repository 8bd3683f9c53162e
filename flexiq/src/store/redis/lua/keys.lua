-- keys: the types of all keys of this side of the store, in the order of keys.rs.
-- Returns a word for each; 'none' for one that is not there
local types = {}
for i, key in ipairs(KEYS) do
  types[i] = redis.call('TYPE', key).ok
end
return types
