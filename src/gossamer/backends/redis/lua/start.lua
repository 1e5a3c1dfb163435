-- ARGV: prefix, -, body, budget of pages or ''
if redis.call('EXISTS', P .. 'record') == 0 then
  redis.call('HSET', P .. 'record', 'version', 1, 'body', ARGV[3], 'ended', '')
  if ARGV[4] ~= '' then
    redis.call('HSET', P .. 'record', 'pages', ARGV[4])
  end
end
return redis.call('HMGET', P .. 'record', 'version', 'body', 'ended')
