-- Redis Cluster, control keys. ARGV: prefix
-- Returns per node that ever joined: node, its last commit, (range, the last commit that changed it)...
local found = {}
for _, id in ipairs(redis.call('SMEMBERS', P .. 'members')) do
  found[#found + 1] = {id, redis.call('HGET', P .. 'node:' .. id, 'commit') or '0',
    redis.call('HGETALL', P .. 'heads:' .. id)}
end
return found
