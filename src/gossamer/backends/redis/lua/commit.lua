-- ARGV: prefix, node, number, totals, pages, domains, then
--   count, (shard, epoch)...          what the commit is based on
--   count, (shard, messages, id)...   read from inboxes, with the id of the last message
--   count, (key, fields, (field, value)..., removed, field...)...   rows, by hash
--   count, (shard, message)...        links to other shards
--   count, (key, field, value)...     contents
--   count, (page, signature, bands, band...)...   signatures
--   count, (file, length)...          archive files
-- Returns the contents that were known: field, value...; and the pages that are similar: page, other, equal lanes...
if not is_live(ME) then
  return lease_lost('its lease has ended')
end
local node_key = P .. 'node:' .. ME
local known = tonumber(redis.call('HGET', node_key, 'commit'))
if tonumber(ARGV[3]) <= known then
  local answer = tonumber(ARGV[3]) == known and redis.call('HGET', node_key, 'answer')
  return answer and cmsgpack.unpack(answer) or {{}, {}}
end
if tonumber(ARGV[3]) ~= known + 1 then
  return lease_lost('the engine has lost its last commit')
end

local claimed = redis.call('HGET', node_key, 'claim:pages') or '0'
if redis.call('HEXISTS', P .. 'record', 'pages') == 1 and tonumber(ARGV[5]) > tonumber(claimed) then
  return lease_lost('the engine has lost its claim to pages')
end

local at = 7
local function take()
  at = at + 1
  return ARGV[at - 1]
end

for _ = 1, take() do
  local shard, epoch = take(), take()
  if redis.call('HGET', P .. 'shards:' .. ME, shard) ~= epoch or redis.call('HGET', P .. 'owners', shard) ~= ME then
    return lease_lost('shard ' .. shard .. ' is not its own any more')
  end
end
local read = {}
for i = 1, take() do
  local shard, count, id = take(), tonumber(take()), take()
  local message = redis.call('LINDEX', P .. 'inbox:' .. shard, count - 1)
  if not message or string.sub(message, 3, 2 + #id) ~= id then
    return lease_lost('the engine has lost messages to shard ' .. shard)
  end
  read[i] = {shard, count}
end

local function each_chunk(command, key, fields, size)
  local first = at
  at = at + fields
  for from = first, at - 1, size do
    redis.call(command, key, unpack(ARGV, from, math.min(from + size, at) - 1))
  end
end

for _ = 1, take() do
  local key = P .. take()
  local set = tonumber(take())
  if set > 0 then
    each_chunk('HSET', key, 2 * set, 4000)
  end
  local gone = tonumber(take())
  if gone > 0 then
    each_chunk('HDEL', key, gone, 4000)
  end
end
for _ = 1, take() do
  local shard, message = take(), take()
  redis.call('RPUSH', P .. 'inbox:' .. shard, message)
  redis.call('HINCRBY', P .. 'inboxes', shard, 1)
end
for _, each in ipairs(read) do
  redis.call('LTRIM', P .. 'inbox:' .. each[1], each[2], -1)
  if redis.call('HINCRBY', P .. 'inboxes', each[1], -each[2]) <= 0 then
    redis.call('HDEL', P .. 'inboxes', each[1])
  end
end
local repeated = {}
for _ = 1, take() do
  local key, field, value = P .. take(), take(), take()
  if redis.call('HSETNX', key, field, value) == 0 then
    repeated[#repeated + 1] = field
    repeated[#repeated + 1] = redis.call('HGET', key, field)
  end
end
local similar = {}
for _ = 1, take() do
  local page, signature, bands = take(), take(), {}
  for index = 1, take() do
    bands[index] = take()
  end
  local other, lanes = nearest(page, signature, bands)
  if other and lanes >= MIN_EQUAL_LANES then
    similar[#similar + 1] = page
    similar[#similar + 1] = other
    similar[#similar + 1] = lanes
  else
    add_signature(page, signature, bands)
  end
end
local files = tonumber(take())
if files > 0 then
  each_chunk('HSET', P .. 'archives:' .. string.match(ME, '^(.*)/'), 2 * files, 4000)
end
redis.call('HSET', node_key, 'commit', ARGV[3], 'totals', ARGV[4], 'pages', ARGV[5], 'domains', ARGV[6],
  'answer', cmsgpack.pack({repeated, similar}))
return {repeated, similar}
