-- ARGV: prefix, node, shards...
if not is_live(ME) then
  return lease_lost('its lease has ended')
end
for i = 3, #ARGV do
  if redis.call('HGET', P .. 'owners', ARGV[i]) == ME then
    redis.call('HDEL', P .. 'owners', ARGV[i])
    redis.call('HDEL', P .. 'shards:' .. ME, ARGV[i])
  end
end
return 1
