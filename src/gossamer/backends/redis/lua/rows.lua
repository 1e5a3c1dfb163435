-- Included by `commit` and `apply`: rows, and contents of pages.
local function write_rows()
  for _ = 1, take() do
    local key = P .. take()
    local set = tonumber(take())
    if set > 0 then
      each_chunk('HSET', key, 2 * set, 4000)
    end
    local gone = tonumber(take())
    if gone > 0 then
      each_chunk('HDEL', key, gone, 4000)
    end
  end
end

-- Returns those that were known: field, value...
local function add_contents()
  local repeated = {}
  for _ = 1, take() do
    local key, field, value = P .. take(), take(), take()
    if redis.call('HSETNX', key, field, value) == 0 then
      repeated[#repeated + 1] = field
      repeated[#repeated + 1] = redis.call('HGET', key, field)
    end
  end
  return repeated
end
