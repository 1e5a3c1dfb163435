-- ARGV: prefix, -, version before, body, budget of pages or '', why the crawl is over or ''
local record = redis.call('HMGET', P .. 'record', 'version', 'ended')
if record[1] ~= ARGV[3] or (record[2] ~= '' and ARGV[6] ~= '') then
  return 0
end
redis.call('HSET', P .. 'record', 'version', tonumber(ARGV[3]) + 1, 'body', ARGV[4], 'ended', '')
if ARGV[5] == '' then
  redis.call('HDEL', P .. 'record', 'pages')
else
  redis.call('HSET', P .. 'record', 'pages', ARGV[5])
end
return 1
