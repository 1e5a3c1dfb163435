-- Redis Cluster, keys of one range: what another server would need to make a commit again.
-- ARGV: prefix, node, number, entry, entries at most, bytes at most
-- Older entries are applied, since a node makes one commit after the other. What nobody removes ends after 30 days.
local key, newest = P .. 'journal:' .. ME, tonumber(ARGV[3])
redis.call('HSET', key, ARGV[3], ARGV[4])
local numbers, size = {}, 0
for i, each in ipairs(redis.call('HKEYS', key)) do
  numbers[i] = tonumber(each)
end
table.sort(numbers, function(one, other)
  return one > other
end)
for _, each in ipairs(numbers) do
  size = size + redis.call('HSTRLEN', key, number(each))
  if each < newest and (each <= newest - tonumber(ARGV[5]) or size > tonumber(ARGV[6])) then
    redis.call('HDEL', key, number(each))
  end
end
redis.call('EXPIRE', key, 2592000)
return 1
