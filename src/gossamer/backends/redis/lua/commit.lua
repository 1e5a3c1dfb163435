-- ARGV: prefix, node, number, totals, pages, domains, then
--   count, (version, body)            the crawl's record before, and as it is with this commit; 0 or 1
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
local known = tonumber(redis.call('HGET', node_key, 'commit'))
if tonumber(ARGV[3]) <= known then
  local answer = tonumber(ARGV[3]) == known and redis.call('HGET', node_key, 'answer')
  return answer and cmsgpack.unpack(answer) or {{}, {}}
end
local why = wrong_basis(known)
if why == 'RECORDCHANGED' then
  return redis.error_reply('RECORDCHANGED another node has changed the record of the crawl')
elseif why then
  return lease_lost(why)
end

write_rows()
send_links()
trim_inboxes()
local repeated = add_contents()
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
write_archives()
write_commit(cmsgpack.pack({repeated, similar}))
return {repeated, similar}
