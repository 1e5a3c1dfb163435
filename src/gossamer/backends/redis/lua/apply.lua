-- Redis Cluster, keys of one range of shards. Repeated, or too late, it changes nothing.
-- ARGV: prefix, node, number, number of the node's commit before that changed this range, then
--   count, (key, fields, (field, value)..., removed, field...)...   rows and messages, by hash
--   count, (key, field, value)...     contents
--   count, (band, page)...            bands of signatures
-- Returns the contents that were known: field, value...
local applied = tonumber(redis.call('HGET', P .. 'applied', ME) or '0')
if tonumber(ARGV[3]) <= applied then
  local answer = tonumber(ARGV[3]) == applied and redis.call('HGET', P .. 'answers', ME)
  return answer and cmsgpack.unpack(answer) or {}
end
if tonumber(ARGV[4]) ~= applied then
  return redis.error_reply('BEHIND a server has lost commits of node ' .. ME)
end
at = 5
write_rows()
local repeated = add_contents()
for _ = 1, take() do
  local band, page = take(), take()
  add_to_band(band, page)
end
redis.call('HSET', P .. 'applied', ME, ARGV[3])
redis.call('HSET', P .. 'answers', ME, cmsgpack.pack(repeated))
return repeated
