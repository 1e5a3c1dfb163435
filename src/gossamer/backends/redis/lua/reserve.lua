-- ARGV: prefix, node, pool (0: no limit), slice in µs (0: no pace),
--   then per address: address, permits in use, wanted, kept
-- Returns per address: permits, µs for which the address is this node's.
--
-- What a node holds counts for 10 s since it said so; a node says it every few seconds. It keeps permits that it does
-- not need now if nobody waits. Who waits comes before who holds: permits are taken back one per waiting node once they
-- were held for a while, and an address goes to the node that waits for it. A server that was restarted, or took over
-- from another, may have lost what was granted: for one slice it grants nothing.
if not is_live(ME) then
  return lease_lost('its lease has ended')
end
local POOL, SLICE = tonumber(ARGV[3]), tonumber(ARGV[4])
local HELD, WAITING, TURN = 10000000, 1000000, 2000000

local is_new = NOW - server_since() <= math.max(SLICE, TURN)

local function permits(key, in_use, wanted, kept)
  local others, mine, since, waits_since, waiting = 0, 0, NOW, NOW, {}
  local fields = redis.call('HGETALL', key)
  for index = 1, #fields, 2 do
    local kind, id = string.sub(fields[index], 1, 2), string.sub(fields[index], 3)
    if kind == 'p:' then
      local count, granted, stamp, first = string.match(fields[index + 1], '(%d+) (%d+) (%d+) (%d+)')
      if id == ME then
        mine, since = tonumber(granted), tonumber(first)
      elseif NOW - stamp < HELD then
        others = others + count
      else
        redis.call('HDEL', key, fields[index])
      end
    elseif kind == 'w:' then
      local stamp, first = string.match(fields[index + 1], '(%d+) (%d+)')
      if id == ME then
        waits_since = tonumber(first)
      elseif NOW - stamp < WAITING then
        waiting[#waiting + 1] = tonumber(first)
      end
    end
  end
  local granted = wanted
  if is_new then
    granted = math.min(wanted, in_use)
  elseif POOL > 0 then
    local free = POOL - others
    if mine == 0 then
      for _, first in ipairs(waiting) do
        free = free - (first < waits_since and 1 or 0)
      end
    elseif #waiting > 0 then
      free = math.min(free, NOW - since >= TURN and mine - #waiting or mine)
    end
    granted = math.max(0, math.min(wanted, free))
  end
  if kept > granted and #waiting == 0 and not is_new then
    granted = POOL > 0 and math.max(granted, math.min(kept, POOL - others)) or kept
  end
  local held = math.max(granted, in_use)
  if held > 0 then
    if mine == 0 or granted < mine then
      since = NOW
    end
    redis.call('HSET', key, 'p:' .. ME, table.concat({number(held), number(granted), number(NOW), number(since)}, ' '))
  else
    redis.call('HDEL', key, 'p:' .. ME)
  end
  if granted == 0 and wanted > 0 then
    redis.call('HSET', key, 'w:' .. ME, number(NOW) .. ' ' .. number(waits_since))
  else
    redis.call('HDEL', key, 'w:' .. ME)
  end
  return granted
end

local function slice(key)
  local found = redis.call('HMGET', key, 'holder', 'until', 'next', 'next_at')
  local holder, ends = found[1], tonumber(found[2] or '0')
  local is_waited_for = found[3] and found[3] ~= ME and NOW - found[4] < WAITING
  if ends > NOW and holder ~= ME then
    if not is_waited_for then
      redis.call('HSET', key, 'next', ME, 'next_at', number(NOW))
    end
    return 0
  end
  if is_waited_for then
    return math.max(0, ends - NOW)
  end
  if is_new then
    return 0
  end
  redis.call('HSET', key, 'holder', ME, 'until', number(NOW + SLICE))
  redis.call('HDEL', key, 'next', 'next_at')
  return SLICE
end

local answers = {}
for index = 5, #ARGV, 4 do
  local key, in_use, wanted = P .. 'address:' .. ARGV[index], tonumber(ARGV[index + 1]), tonumber(ARGV[index + 2])
  answers[#answers + 1] = permits(key, in_use, wanted, tonumber(ARGV[index + 3]))
  answers[#answers + 1] = SLICE > 0 and wanted > 0 and slice(key) or 0
  redis.call('PEXPIRE', key, number(math.max(HELD, 2 * SLICE) / 1000))
end
return answers
