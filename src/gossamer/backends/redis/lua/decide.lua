-- Redis Cluster, control keys. From here on the commit is made: `apply` writes its rows.
-- ARGV: prefix, node, number, totals, pages, domains, then
--   count, (version, body)            the crawl's record before, and as it is with this commit; 0 or 1
--   count, (shard, epoch)...          what the commit is based on
--   count, (shard, messages, id)...   read from inboxes, with the id of the last message
--   count, (shard, message)...        links to other shards: id and length only
--   count, (file, length)...          archive files
--   count, range...                   ranges of shards that it changes
--   answer, and 'again' if the commit was made before, but the server has lost it
-- Returns the time in µs, and the answer to the commit of this number
local was_made = ARGV[#ARGV] == 'again'
if not was_made and not is_live(ME) then
  return lease_lost('its lease has ended')
end
local known = tonumber(redis.call('HGET', node_key, 'commit') or '0')
if tonumber(ARGV[3]) <= known then
  return {number(NOW), tonumber(ARGV[3]) == known and redis.call('HGET', node_key, 'answer') or ''}
end
local why = wrong_basis(known, was_made)
if why == 'RECORDCHANGED' then
  return redis.error_reply('RECORDCHANGED another node has changed the record of the crawl')
elseif why then
  return lease_lost(why)
end

if was_made then
  -- The server may have lost that the node joined. Messages that were read are where they are, if they are there.
  redis.call('SADD', P .. 'members', ME)
  local found = {}
  for _, each in ipairs(read) do
    for place, message in ipairs(redis.call('LRANGE', P .. 'inbox:' .. each[1], 0, -1)) do
      if has_id(message, each[3]) then
        found[#found + 1] = {each[1], place}
        break
      end
    end
  end
  read = found
end
send_links()
trim_inboxes()
write_archives()
for _ = 1, take() do
  redis.call('HSET', P .. 'heads:' .. ME, take(), ARGV[3])
end
local answer = take()
write_commit(answer)
return {number(NOW), answer}
