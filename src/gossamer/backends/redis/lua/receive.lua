-- ARGV: prefix, node, bytes at most, (shard, messages that it has, id of the last)...
-- Returns shard, message... On Redis Cluster these are ids and lengths, and the time in µs comes first.
if not is_live(ME) then
  return lease_lost('its lease has ended')
end
local has = {}
for i = 4, #ARGV, 3 do
  has[ARGV[i]] = tonumber(ARGV[i + 1])
  local message, id = redis.call('LINDEX', P .. 'inbox:' .. ARGV[i], has[ARGV[i]] - 1), ARGV[i + 2]
  if not message or string.sub(message, 3, 2 + #id) ~= id then
    has[ARGV[i]] = math.huge
  end
end
local received, size = {}, 0
local inboxes = redis.call('HGETALL', P .. 'inboxes')
for i = 1, #inboxes, 2 do
  local shard, read = inboxes[i], has[inboxes[i]] or 0
  if tonumber(inboxes[i + 1]) > read and redis.call('HGET', P .. 'owners', shard) == ME then
    while size < tonumber(ARGV[3]) do
      local messages = redis.call('LRANGE', P .. 'inbox:' .. shard, read, read + 9)
      for _, message in ipairs(messages) do
        received[#received + 1] = shard
        received[#received + 1] = message
        size = size + (IS_SPREAD and struct.unpack('>I4', message, #message - 3) or #message)
      end
      read = read + #messages
      if #messages < 10 then
        break
      end
    end
  end
end
return IS_SPREAD and {number(NOW), received} or received
