-- Redis Cluster, keys of one range. ARGV: prefix, -, bands...
-- Returns per band the ids of the latest pages with it
local found = {}
for i = 3, #ARGV do
  local key, field = band_place(ARGV[i])
  found[#found + 1] = redis.call('HGET', key, field) or ''
end
return found
