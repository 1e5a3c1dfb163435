-- ARGV: prefix, node, why it is idle, its last commit, version of the record and number of domains that it knows, status
if not is_live(ME) then
  return lease_lost('its lease has ended')
end
local key = P .. 'node:' .. ME
local lease_s = redis.call('HGET', key, 'lease_s')
redis.call('HSET', key, 'lease_until', number(NOW + lease_s * 1000000), 'idle', ARGV[3], 'idle_commit', ARGV[4],
  'idle_version', ARGV[5], 'idle_domains', ARGV[6], 'status', ARGV[7])
return membership()
