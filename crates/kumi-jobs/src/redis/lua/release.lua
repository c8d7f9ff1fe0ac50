-- release: gives back what a crashed owner holds, 50 tasks per call. ARGV: now mode owner silent_ms first
-- mode is 'life', 'before', or 'node': then the owner is what those of a life of a node begin with, @cluster/name~life/.
-- Answers -1 if the owner is alive and -2 if releases of nodes are switched off, or the number of tasks and whether there
-- are more, and the tasks.
if is_draining then return format_error() end
begin()
beat(false)
-- Releases that are remembered, as in core/machine/released.rs.
local RELEASED_LIMIT = 10000
local mode, owner, lives = ARGV[2], ARGV[3], {}
if mode == 'node' and call('GET', P .. 'releases') == 'off' then return { -2, 0, lost } end
local name, life = name_and_life(owner)
local function is_gone(other)
  if mode == 'node' then return string.sub(other, 1, #owner) == owner end
  local other_name, other_life = name_and_life(other)
  return other_name == name and other_life < life
end
if mode == 'life' then
  lives[1] = owner
else
  if not name then return redis.error_reply('ERR ' .. owner .. ' is not an owner (name~life)') end
  for _, other in ipairs(call('ZRANGE', P .. 'owners', 0, -1)) do
    if is_gone(other) then lives[#lives + 1] = other end
  end
  table.sort(lives)
end
if ARGV[5] == '1' then
  -- Its lease may be one of those that are still to be extended.
  if is_extending and tonumber(ARGV[4]) > 0 then return { -1, 0, lost } end
  for _, life in ipairs(lives) do
    local renewed, extended = times_of(call('HGET', P .. 'seen', life))
    if renewed and renewed + tonumber(ARGV[4]) > now then return { -1, 0, lost } end
    -- It could not renew its lease, and has the time to do it now; unless the caller knows that it is gone.
    local ends = extended and tonumber(ARGV[4]) > 0 and call('ZSCORE', P .. 'owners', life)
    if ends and tonumber(ends) > now then return { -1, 0, lost } end
  end
end
-- The name with an empty life stands for its lives before the one that the hash before has. An owner that holds nothing
-- loses nothing, and may go on; but a name's earlier lives are over.
if mode ~= 'before' then
  local holds_some = false
  for _, life in ipairs(lives) do
    if call('EXISTS', P .. 'run:' .. life) == 1 then holds_some = true end
  end
  if holds_some then call('ZADD', P .. 'released', NOW, owner) end
else
  local first = call('HGET', P .. 'before', name)
  if not first or first < life then call('HSET', P .. 'before', name, life) end
  call('ZADD', P .. 'released', NOW, name .. '~')
end
-- A wait of each of these owners may still be there, and takes a marker that nobody reads.
markers = math.min(#lives + 1, MARKERS_LIMIT)
local count, more = 0, 0
for _, life in ipairs(lives) do
  -- The next call goes on with this life.
  if count == TURN then
    more = 1
    break
  end
  local ids = some_running(life)
  -- The last one first: each goes to the head of its line, and so they keep their order.
  for n = #ids, 1, -1 do
    if count == TURN then break end
    count = count + 1
    local r = load(ids[n])
    if r and r.s == 'r' and r.o == life then
      lose(r, 'worker ' .. life .. ' was declared gone', true)
    else
      call('HDEL', P .. 'run:' .. life, ids[n])
    end
  end
  flush_left()
  if call('EXISTS', P .. 'run:' .. life) == 1 then more = 1 end
end
-- The oldest are forgotten. Each call adds one.
if call('ZCARD', P .. 'released') > RELEASED_LIMIT then
  local oldest = call('ZRANGE', P .. 'released', '0', '0')[1]
  call('ZREM', P .. 'released', oldest)
  local forgotten = string.match(oldest, '^(.*)~$')
  if forgotten then call('HDEL', P .. 'before', forgotten) end
end
flush()
return { count, more, lost }
