-- ARGV: prefix, node
if redis.call('EXISTS', P .. 'node:' .. ME) == 1 then
  redis.call('HSET', P .. 'node:' .. ME, 'over', 1)
end
return 1
