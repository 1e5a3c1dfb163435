-- Included by scripts with long lists of arguments: reads them one after the other.
local at = 7

local function take()
  at = at + 1
  return ARGV[at - 1]
end

local function each_chunk(command, key, fields, size)
  local first = at
  at = at + fields
  for from = first, at - 1, size do
    redis.call(command, key, unpack(ARGV, from, math.min(from + size, at) - 1))
  end
end
