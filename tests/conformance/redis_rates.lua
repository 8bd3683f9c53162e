-- Tells what a gate says while starts are logged, for tests that hold it to the policy. Behind queue.lua and gates.lua.
-- ARGV  from 4, three of each step: moment, starts wanted, rates
-- Returns for each step two of each rate, admitted and when one more opens; then what the gate admits, and when it opens
-- (0 if time does not). What the gate admits is started.
local answer = {}
for i = 4, #ARGV, 3 do
  now = tonumber(ARGV[i])
  local wanted, gate = tonumber(ARGV[i + 1]), read_gate('task', '0||' .. ARGV[i + 2])
  local newest = of_rates().newest_start(gate)
  for _, rate in ipairs(gate.rates) do
    local most, opens = of_rates().admit_rate(gate, rate, newest, wanted, newest and math.max(now, newest.at) or now)
    answer[#answer + 1] = most
    answer[#answer + 1] = opens
  end
  local most, opens = admit(gate, wanted)
  answer[#answer + 1] = most
  answer[#answer + 1] = opens or 0
  if most > 0 then charge(gate, most) end
end
return answer
