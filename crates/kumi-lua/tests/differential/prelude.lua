local out = {}
local function show(v, depth)
  local kind = type(v)
  if kind == 'number' then
    if v ~= v then return 'nan' end
    return string.format('%.17g', v)
  elseif kind == 'string' then
    return '"' .. (string.gsub(v, '[^%w%p ]', function(c) return string.format('\\%d', string.byte(c)) end)) .. '"'
  elseif kind == 'table' then
    if depth > 4 then return '{...}' end
    local parts = {}
    for k, x in pairs(v) do
      parts[#parts + 1] = '[' .. show(k, depth + 1) .. ']=' .. show(x, depth + 1)
    end
    return '{' .. table.concat(parts, ',') .. '}#' .. #v
  elseif kind == 'function' or kind == 'thread' then
    return kind
  end
  return tostring(v)
end
local function pack(...)
  return {n = select('#', ...), ...}
end
local function T(f)
  local r = pack(pcall(f))
  local parts = {}
  for i = 1, r.n do parts[i] = show(r[i], 0) end
  local text = string.gsub(table.concat(parts, ' '), '\n', '\\n')
  out[#out + 1] = string.gsub(text, '(%a+: )0x%x+', '%1ADDRESS')
end
