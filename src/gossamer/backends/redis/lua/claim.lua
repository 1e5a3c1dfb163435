-- ARGV: prefix, node, budget (pages), amount in all
if not is_live(ME) then
  return lease_lost('its lease has ended')
end
local budget = ARGV[3]
local whole = tonumber(redis.call('HGET', P .. 'record', budget))
local free = whole
for _, id in ipairs(redis.call('SMEMBERS', P .. 'members')) do
  local node = redis.call('HMGET', P .. 'node:' .. id, budget, 'claim:' .. budget)
  local used, claimed = tonumber(node[1] or '0'), tonumber(node[2] or '0')
  if id ~= ME then
    free = free - (is_live(id) and math.max(used, claimed) or used)
  end
end
local used = tonumber(redis.call('HGET', P .. 'node:' .. ME, budget))
local granted = math.max(math.min(tonumber(ARGV[4]), free), used)
redis.call('HSET', P .. 'node:' .. ME, 'claim:' .. budget, granted)
return granted
