-- ARGV: prefix, node, shards...
--
-- A server that was restarted may have lost the last renewals: nodes that it knows have a lease from its start on.
if not is_live(ME) then
  return lease_lost('its lease has ended')
end
local since = server_since()

local function may_be_live(id)
  if is_live(id) then
    return true
  end
  local node = redis.call('HMGET', P .. 'node:' .. id, 'over', 'lease_s')
  return node[2] and not node[1] and since + node[2] * 1000000 > NOW
end

local wanted = {}
for i = 3, #ARGV do
  wanted[#wanted + 1] = ARGV[i]
end
local epoch = math.max(NOW, tonumber(redis.call('GET', P .. 'epoch') or '0'))
local taken = {}
for first = 1, #wanted, 1000 do
  local owners = redis.call('HMGET', P .. 'owners', unpack(wanted, first, math.min(first + 999, #wanted)))
  for i, owner in ipairs(owners) do
    if not owner or not may_be_live(owner) then
      local shard = wanted[first + i - 1]
      if owner then
        redis.call('HSET', P .. 'node:' .. owner, 'over', 1)
        redis.call('HDEL', P .. 'shards:' .. owner, shard)
      end
      epoch = epoch + 1
      redis.call('HSET', P .. 'owners', shard, ME)
      redis.call('HSET', P .. 'shards:' .. ME, shard, number(epoch))
      taken[#taken + 1] = shard
      taken[#taken + 1] = number(epoch)
    end
  end
end
if #taken > 0 then
  redis.call('SET', P .. 'epoch', number(epoch))
  redis.call('HSET', P .. 'node:' .. ME, 'idle', '')
end
return taken
