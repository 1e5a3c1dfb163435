-- Included by `commit` and `decide`: what a commit is based on, and what it changes beside rows.
local node_key = P .. 'node:' .. ME
local read = {}
local new_record

local function has_id(message, id)
  return message and string.sub(message, 3, 2 + #id) == id
end

-- Returns why a commit cannot be made, or nil. One that was made before, and lost, needs nothing but its predecessor;
-- whoever makes it again has changed the crawl's record before.
local function wrong_basis(known, was_made)
  if tonumber(ARGV[3]) ~= known + 1 then
    return 'the engine has lost its last commit'
  end
  local claimed = redis.call('HGET', node_key, 'claim:pages') or '0'
  local has_budget = not was_made and redis.call('HEXISTS', P .. 'record', 'pages') == 1
  if has_budget and tonumber(ARGV[5]) > tonumber(claimed) then
    return 'the engine has lost its claim to pages'
  end
  if take() == '1' then
    local version, body = take(), take()
    if not was_made and redis.call('HGET', P .. 'record', 'version') ~= version then
      return 'RECORDCHANGED'
    end
    new_record = not was_made and {'version', tonumber(version) + 1, 'body', body} or nil
  end
  for _ = 1, take() do
    local shard, epoch = take(), take()
    local is_mine = was_made
      or (redis.call('HGET', P .. 'shards:' .. ME, shard) == epoch and redis.call('HGET', P .. 'owners', shard) == ME)
    if not is_mine then
      return 'shard ' .. shard .. ' is not its own any more'
    end
  end
  for i = 1, take() do
    local shard, count, id = take(), tonumber(take()), take()
    if not was_made and not has_id(redis.call('LINDEX', P .. 'inbox:' .. shard, count - 1), id) then
      return 'the engine has lost messages to shard ' .. shard
    end
    read[i] = {shard, count, id}
  end
end

local function send_links()
  for _ = 1, take() do
    local shard, message = take(), take()
    redis.call('RPUSH', P .. 'inbox:' .. shard, message)
    redis.call('HINCRBY', P .. 'inboxes', shard, 1)
  end
end

local function trim_inboxes()
  for _, each in ipairs(read) do
    redis.call('LTRIM', P .. 'inbox:' .. each[1], each[2], -1)
    if redis.call('HINCRBY', P .. 'inboxes', each[1], -each[2]) <= 0 then
      redis.call('HDEL', P .. 'inboxes', each[1])
    end
  end
end

local function write_archives()
  local files = tonumber(take())
  if files > 0 then
    each_chunk('HSET', P .. 'archives:' .. string.match(ME, '^(.*)/'), 2 * files, 4000)
  end
end

local function write_commit(answer)
  if new_record then
    redis.call('HSET', P .. 'record', unpack(new_record))
  end
  redis.call('HSET', node_key, 'commit', ARGV[3], 'totals', ARGV[4], 'pages', ARGV[5], 'domains', ARGV[6],
    'answer', answer)
end
