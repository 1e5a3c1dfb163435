-- ARGV: prefix, node, name, label, lease in seconds
local name = ARGV[3] .. '/'
for _, id in ipairs(redis.call('SMEMBERS', P .. 'members')) do
  if id ~= ME and string.sub(id, 1, #name) == name and is_live(id) then
    return redis.error_reply('NAMETAKEN ' .. id)
  end
end
if not is_live(ME) then
  redis.call('SADD', P .. 'members', ME)
  redis.call('HSET', P .. 'node:' .. ME, 'label', ARGV[4], 'lease_s', ARGV[5], 'commit', 0, 'pages', 0, 'domains', 0,
    'lease_until', number(NOW + ARGV[5] * 1000000))
  live_nodes[ME] = true
end
return membership()
