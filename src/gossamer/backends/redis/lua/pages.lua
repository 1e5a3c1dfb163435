-- Included by `commit`, `apply` and `candidates`: signatures of the pages of all nodes.
local MAX_EQUAL, MAX_COMPARED, ID = 4, 4, 16

local function equal_lanes(one, other)
  local equal = 0
  for from = 1, #one, 4 do
    if string.sub(one, from, from + 3) == string.sub(other, from, from + 3) then
      equal = equal + 1
    end
  end
  return equal
end

local function signature_key(page)
  return P .. 'signatures:' .. string.format('%02x', string.byte(page, -1))
end

local function band_place(band)
  return P .. 'bands:' .. string.format('%02x%02x', string.byte(band, 1), string.byte(band, 2)), string.sub(band, 3)
end

-- Returns the page whose signature is the most similar, and how many lanes are equal.
local function nearest(page, signature, bands)
  local shared, found = {}, {}
  for _, band in ipairs(bands) do
    local key, field = band_place(band)
    local pages = redis.call('HGET', key, field) or ''
    for from = 1, #pages, ID do
      local other = string.sub(pages, from, from + ID - 1)
      if other ~= page then
        if not shared[other] then
          found[#found + 1] = other
        end
        shared[other] = (shared[other] or 0) + 1
      end
    end
  end
  table.sort(found, function(one, other)
    return shared[one] > shared[other] or (shared[one] == shared[other] and one < other)
  end)
  local best, lanes = nil, 0
  for index = 1, math.min(#found, MAX_COMPARED) do
    local known = redis.call('HGET', signature_key(found[index]), found[index])
    local equal = known and equal_lanes(signature, known) or 0
    if equal > lanes then
      best, lanes = found[index], equal
    end
  end
  return best, lanes
end

local function add_to_band(band, page)
  local key, field = band_place(band)
  local pages = (redis.call('HGET', key, field) or '') .. page
  redis.call('HSET', key, field, string.sub(pages, -MAX_EQUAL * ID))
end

local function add_signature(page, signature, bands)
  if redis.call('HSETNX', signature_key(page), page, signature) == 0 then
    return
  end
  for _, band in ipairs(bands) do
    add_to_band(band, page)
  end
end
