-- release: gives back what a crashed owner holds, 100 tasks per call. ARGV: now mode owner silent_ms first
-- mode is 'life' or 'before'. Answers -1 if the owner is alive, or the number of tasks and whether there are more.
call('DEL', P .. 'none')
local owner, lives = ARGV[3], {}
if ARGV[2] == 'life' then
  lives[1] = owner
else
  local name, life = string.match(owner, '^(.*)~(.*)$')
  for _, other in ipairs(call('ZRANGE', P .. 'owners', 0, -1)) do
    local other_name, other_life = string.match(other, '^(.*)~(.*)$')
    if other_name == name and other_life < life then lives[#lives + 1] = other end
  end
  table.sort(lives)
end
if ARGV[5] == '1' then
  for _, life in ipairs(lives) do
    local seen = call('HGET', P .. 'seen', life)
    if seen and seen + tonumber(ARGV[4]) > now then return { -1, 0 } end
  end
end
local count, more = 0, 0
for _, life in ipairs(lives) do
  call('ZADD', P .. 'released', now, life)
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
call('ZREMRANGEBYRANK', P .. 'released', 0, -10001)
flush()
return { count, more }
