-- ARGV: prefix, node
if not is_live(ME) then
  return lease_lost('its lease has ended')
end
local record = redis.call('HMGET', P .. 'record', 'version', 'ended', 'pages')
if record[2] ~= '' then
  return record[2]
end
if redis.call('EXISTS', P .. 'inboxes') == 1 then
  return ''
end
local owned, pages, domains, reasons, known = 0, 0, 0, {}, {}
for _, id in ipairs(redis.call('SMEMBERS', P .. 'members')) do
  local node = redis.call('HMGET', P .. 'node:' .. id, 'idle', 'idle_commit', 'idle_version', 'commit', 'pages',
    'domains', 'idle_domains')
  pages, domains = pages + tonumber(node[5] or '0'), domains + tonumber(node[6] or '0')
  if is_live(id) then
    if not node[1] or node[1] == '' or node[2] ~= node[4] or node[3] ~= record[1] then
      return ''
    end
    owned = owned + redis.call('HLEN', P .. 'shards:' .. id)
    reasons[node[1]] = true
    known[#known + 1] = node[7] ~= '' and node[7] or nil
  end
end
if owned < SHARDS or (reasons['max_pages'] and pages < tonumber(record[3])) then
  return ''
end
for _, each in ipairs(known) do
  if tonumber(each) ~= domains then
    return ''
  end
end
local why = 'exhausted'
for _, each in ipairs({'held', 'budgets', 'parked', 'max_pages', 'target_domains'}) do
  why = reasons[each] and each or why
end
redis.call('HSET', P .. 'record', 'ended', why, 'version', tonumber(record[1]) + 1)
return why
