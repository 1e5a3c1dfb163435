-- ARGV: prefix, -, number of tables, tables..., shards...
-- Returns table, shard, rows for every hash of these that is not empty
local tables = tonumber(ARGV[3])
local found = {}
for shard = 4 + tables, #ARGV do
  for table = 4, 3 + tables do
    local rows = redis.call('HLEN', P .. ARGV[table] .. ':' .. ARGV[shard])
    if rows > 0 then
      found[#found + 1] = ARGV[table]
      found[#found + 1] = ARGV[shard]
      found[#found + 1] = rows
    end
  end
end
return found
