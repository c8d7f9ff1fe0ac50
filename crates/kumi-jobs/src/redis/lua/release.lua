-- release: gives back what a crashed owner holds, 50 tasks per call. ARGV: now mode owner silent_ms first
-- mode is 'life' or 'before'. Answers -1 if the owner is alive, or the number of tasks and whether there are more, and
-- the tasks.
if is_draining then return format_error() end
begin()
beat(false)
local RELEASED_LIMIT = 10000
local owner, lives = ARGV[3], {}
local name, life = string.match(owner, '^(.*)~(.*)$')
if ARGV[2] == 'life' then
  lives[1] = owner
else
  if not name then return redis.error_reply('ERR ' .. owner .. ' is not an owner (name~life)') end
  for _, other in ipairs(call('ZRANGE', P .. 'owners', 0, -1)) do
    local other_name, other_life = string.match(other, '^(.*)~(.*)$')
    if other_name == name and other_life < life then lives[#lives + 1] = other end
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
-- The name with an empty life stands for its lives before the one that the hash before has.
if ARGV[2] == 'life' then
  call('ZADD', P .. 'released', NOW, owner)
else
  local first = call('HGET', P .. 'before', name)
  if not first or first < life then call('HSET', P .. 'before', name, life) end
  call('ZADD', P .. 'released', NOW, name .. '~')
end
local count, more = 0, 0
for _, life in ipairs(lives) do
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
