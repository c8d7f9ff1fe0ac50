-- upgrade: one step of a queue's way to this format. It stands alone: lib.lua works on queues of this format only.
-- KEYS[1] is the prefix of all keys of the queue. ARGV: now force cursor
-- now is empty for the server's clock, force is '1' to move a queue whose workers seem to be alive, the cursor is empty in
-- the first step. Reply: the format that the queue had, and the cursor of the next step, empty after the last one.
-- Between two steps the version is "2>3", and no other script of this format works on the queue.
local FORMAT = '3'
local P, call = KEYS[1], redis.call
local now
if ARGV[1] == '' then
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
else
  now = tonumber(ARGV[1])
end
local version = call('GET', P .. 'version')
if not version then return redis.error_reply('ERR there is no such queue') end
if version == FORMAT then return { version, '' } end
local from = string.match(version, '^(%d+)$') or string.match(version, '^(%d+)>' .. FORMAT .. '$')
if from ~= '2' then
  return redis.error_reply('FORMAT ' .. version .. ' is the format of the queue; this script moves format 2 to ' .. FORMAT)
end
-- Scripts of format 2 do not look at the version. A worker of that format asks at least every 5 s while it is idle, and
-- renews its lease while it is not.
local ASKED_MS = 15000
if version == from and ARGV[2] ~= '1' then
  local asked = call('ZRANGEBYSCORE', P .. 'served', string.format('%d', now - ASKED_MS), '+inf', 'LIMIT', '0', '1')[1]
  local owner = call('ZRANGEBYSCORE', P .. 'owners', '(' .. string.format('%d', now), '+inf', 'LIMIT', '0', '1')[1]
  if owner then return redis.error_reply('ALIVE the worker ' .. owner .. ' has a lease') end
  if asked then return redis.error_reply('ALIVE a worker has asked for tasks of the type ' .. asked) end
end
-- Format 3 adds keys and moves none. The sorted set blocked has the tasks that wait in serial lines, by the time since
-- which they do: all payloads are gone through, in steps, which large payloads make short.
local STEP, STEPS, BYTES = 4, 100, 1048576
call('DEL', P .. 'none')
call('SET', P .. 'version', from .. '>' .. FORMAT)
local cursor, bytes = ARGV[3] == '' and '0' or ARGV[3], 0
for _ = 1, STEPS do
  local page = call('HSCAN', P .. 'payload', cursor, 'COUNT', STEP)
  cursor = page[1]
  for n = 1, #page[2], 2 do
    local id = page[2][n]
    bytes = bytes + #page[2][n + 1]
    local record = call('HMGET', P .. 't:' .. id, 's', 'u', 'c')
    if record[1] == 'b' then call('ZADD', P .. 'blocked', record[2] or record[3] or '0', id) end
  end
  if cursor == '0' or bytes >= BYTES then break end
end
if cursor ~= '0' then return { from, cursor } end
call('SET', P .. 'version', FORMAT)
return { from, '' }
