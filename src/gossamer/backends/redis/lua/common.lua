-- What every script begins with. Keys, all with the prefix `gossamer:CRAWL:`
--
--   record                 hash    version, body (MessagePack of CrawlRecord), ended, pages (the budget, if there is one)
--   members                set     NAME/INCARNATION of every node that ever joined
--   node:NAME/INCARNATION  hash    lease_s, lease_until (µs), over, label, commit, pages, domains, totals (JSON),
--                                  claim:BUDGET, idle, idle_commit, idle_version, idle_domains, status (JSON)
--   shards:NAME/INCARNATION hash   shard -> epoch: what the node owns
--   owners                 hash    shard -> NAME/INCARNATION
--   epoch                  string  the last one
--   mended                 string  the run of the server whose append-only file was written anew;
--                                  on Redis Cluster a set, of the runs of all servers
--   inboxes                hash    shard -> messages that wait
--   inbox:SHARD            list    messages: length of the id (2 bytes), id, links
--   archives:NAME          hash    file -> committed length
--   contents:XX            hash    content hash -> URL id of the first page with it; XX: its first byte
--   signatures:XX          hash    URL id -> MinHash signature, of pages that repeat no other; XX: its last byte
--   bands:XXXX             hash    band of a signature -> ids of the latest pages with it; XXXX: its first bytes
--   address:IP             hash    p:NODE -> permits held, granted, when it said so, since when (µs);
--                                  w:NODE -> it waits: when it said so, since when;
--                                  holder, until: whose the address is; next, next_at: who waits for it
--   server                 hash    run (the server's run id), since (µs): when nodes first met this server
--   TABLE:SHARD            hash    the rows of a shard: see `keys.py`
--
-- On Redis Cluster the prefix of the keys up to `archives`, of `address` and `server` is `gossamer:CRAWL:{CRAWL}:`: these
-- are the control keys, in one hash slot. Contents, signatures, bands and rows are in 64 ranges (`ranges.py`), with the
-- prefix `gossamer:CRAWL:{CRAWL/RANGE}:`. Further control keys:
--
--   inbox:SHARD            list    messages: length of the id, id, length of the links (4 bytes)
--   heads:NAME/INCARNATION hash    range -> number of the node's last commit that changed it
--
-- and in each range:
--
--   inbox:SHARD            hash    id of a message -> links
--   applied                hash    NAME/INCARNATION -> number of its last commit that is applied here
--   answers                hash    NAME/INCARNATION -> contents that were known before, in that commit (MessagePack)
--   journal:NAME/INCARNATION hash  number of a commit -> what other servers get of it (MessagePack of Plan)
--
-- A script checks everything before it changes anything: an error does not undo what was done before it.
local P, ME = ARGV[1], ARGV[2]
local SHARDS = 4096

local function now_us()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

local NOW = now_us()

local function number(value)
  return string.format('%.0f', value)
end

local live_nodes = {}

local function is_live(id)
  if live_nodes[id] == nil then
    local node = redis.call('HMGET', P .. 'node:' .. id, 'over', 'lease_until')
    live_nodes[id] = node[2] and not node[1] and tonumber(node[2]) > NOW
  end
  return live_nodes[id]
end

-- Since when this server is the one that nodes know, in µs: one that was restarted, or took over from another, may have
-- lost what it was told last. The first one of a crawl has lost nothing.
local function server_since()
  local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
  local known = redis.call('HMGET', P .. 'server', 'run', 'since')
  if known[1] ~= run then
    known = {run, known[1] and number(NOW) or '0'}
    redis.call('HSET', P .. 'server', 'run', run, 'since', known[2])
  end
  return tonumber(known[2])
end

local function lease_lost(why)
  return redis.error_reply('LEASELOST ' .. why)
end

local function membership()
  local members, domains, first_end = {}, 0, nil
  for _, id in ipairs(redis.call('SMEMBERS', P .. 'members')) do
    local node = redis.call('HMGET', P .. 'node:' .. id, 'domains', 'label', 'lease_until')
    domains = domains + tonumber(node[1] or '0')
    if is_live(id) then
      members[#members + 1] = id
      members[#members + 1] = node[2] or ''
      first_end = math.min(first_end or tonumber(node[3]), tonumber(node[3]))
    end
  end
  local record = redis.call('HMGET', P .. 'record', 'version', 'ended', 'pages')
  local me = redis.call('HMGET', P .. 'node:' .. ME, 'lease_s', 'commit', 'claim:pages')
  local shards = redis.call('HGETALL', P .. 'shards:' .. ME)
  local claimed = record[3] and (me[3] or '0') or ''
  local left = number((first_end or NOW) - NOW)
  return {number(NOW), me[1], members, shards, me[2], claimed, record[1] or '0', domains, left, record[2] or ''}
end
