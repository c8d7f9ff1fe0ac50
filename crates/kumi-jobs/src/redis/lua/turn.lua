-- turn: reports, ended leases, what is due, claims.
-- ARGV: now owner nonce lease keep keep_ms keep_dead keep_dead_ms max types reports (type room)* (id token kind a b)*
-- The first write is a DEL, which a full server allows; it lets the script finish what it began.
call('DEL', P .. 'none')
local owner, nonce, lease = ARGV[2], ARGV[3], tonumber(ARGV[4])
if is_released(owner) then return released_error(owner) end
local keep, max, kinds, reports = tonumber(ARGV[5]), tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])

-- The attempt is given back. False if the task can run no more.
local function give_back(r)
  if number(r.g, 0) < 100 then
    r.g = number(r.g, 0) + 1
    r.a = r.a - 1
    return true
  end
  if number(r.a, 0) < number(r.m, 5) then return true end
  call('HSET', P .. 'error', r.id, 'given back more than 100 times')
  return false
end

local function report(id, token, kind, a, b)
  local r = load(id)
  if not r then return 'U' end
  if r.k ~= token then return 'R' end
  if r.s ~= 'r' then return 'D' end
  local is_cancelled = r.x and r.x ~= ''
  stop_running(r)
  if kind == 'S' then
    if a == 'x' then call('HSET', P .. 't:' .. id, 'z', '1') end
    if a == '1' and keep > 0 then call('HSET', P .. 'result', id, b) end
    finish(r, 's', keep)
  elseif kind == 'F' then
    call('HSET', P .. 'error', id, b)
    if a == '' then
      finish(r, 'd')
    elseif is_cancelled then
      finish(r, 'c')
    elseif number(r.a, 0) < number(r.m, 5) then
      later('retry', r, 'e', now + tonumber(a))
    else
      finish(r, 'd')
    end
  elseif kind == 'C' or is_cancelled then
    finish(r, 'c')
  elseif not give_back(r) then
    finish(r, 'd')
  elseif kind == 'Z' then
    later('scheduled', r, 'w', now + tonumber(a))
  else
    back_in_line(r)
  end
  return 'A' .. r.s
end

local finished, at = {}, 12 + 2 * kinds
for n = 1, reports do
  finished[n] = report(ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4])
  at = at + 5
end
flush_left()
reap_one()
promote()
local due = next_due()
local more = due ~= nil and due <= now
trim(keep, tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8]))
flush_lines()

local asked, names = {}, { P .. 'served' }
for n = 1, kinds do
  local kind = { name = ARGV[10 + 2 * n], room = tonumber(ARGV[11 + 2 * n]), lengths = {} }
  for level = 0, 3 do kind.lengths[level] = call('LLEN', P .. 'ready:' .. level .. ':' .. kind.name) end
  local limit = call('HGET', P .. 'limits', kind.name)
  if limit then
    local field = 'r:' .. kind.name
    local running = number(call('HGET', P .. 'counts', field), 0) + (counts[field] or 0)
    kind.limited = math.max(0, limit - running)
    kind.room = math.min(kind.room, kind.limited)
  end
  asked[n] = kind
  names[#names + 1] = now
  names[#names + 1] = kind.name
end
if kinds > 0 then call('ZADD', unpack(names)) end

-- From which lines to take: the claim counter walks over the priorities, and types take turns within one.
local SLOTS = { 0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1, 0 }
local paused = call('EXISTS', P .. 'paused') == 1
local counter = number(call('GET', P .. 'tokens'), 0)
local plan, takes, turn_of = {}, {}, { [0] = 0, 0, 0, 0 }
local function pick(level)
  for offset = 0, kinds - 1 do
    local index = (turn_of[level] + offset) % kinds
    local kind = asked[index + 1]
    if kind.room > 0 and kind.lengths[level] > 0 then return index end
  end
end
if not paused then
  for step = 1, math.min(max, TURN) do
    local level = SLOTS[(counter + step) % 15 + 1]
    local index = pick(level)
    if not index then
      for other = 0, 3 do
        level, index = other, pick(other)
        if index then break end
      end
    end
    if not index then break end
    local kind = asked[index + 1]
    kind.room = kind.room - 1
    kind.lengths[level] = kind.lengths[level] - 1
    turn_of[level] = index + 1
    local key = P .. 'ready:' .. level .. ':' .. kind.name
    takes[key] = (takes[key] or 0) + 1
    plan[step] = { key, kind }
  end
end
local popped = {}
for key, count in pairs(takes) do popped[key] = { at = 0, ids = call('LPOP', key, count) } end
local candidates = {}
for _, step in ipairs(plan) do
  local lane_ids = popped[step[1]]
  lane_ids.at = lane_ids.at + 1
  local r = load(lane_ids.ids[lane_ids.at])
  -- An id that was cancelled in line is skipped.
  if r and r.s == 'q' then
    candidates[#candidates + 1] = { r, step[1], step[2] }
  else
    step[2].room = step[2].room + 1
  end
end
-- Payloads in small groups, so that large ones stop the claim at 1 MiB of reply.
local claims, running, bytes, first = {}, {}, 0, 1
while first <= #candidates and bytes < 1048576 do
  local ids, last = {}, math.min(first + 7, #candidates)
  for n = first, last do ids[#ids + 1] = candidates[n][1].id end
  local bodies = call('HMGET', P .. 'payload', unpack(ids))
  for n = first, last do
    local r = candidates[n][1]
    counter = counter + 1
    r.k, r.a, r.r = string.format('%d-', counter) .. nonce, number(r.a, 0) + 1, number(r.r, 0) + 1
    move(r, 'r')
    call('HSET', P .. 't:' .. r.id, 's', 'r', 'u', now, 'a', r.a, 'r', r.r, 'k', r.k, 'o', owner)
    running[#running + 1] = r.id
    running[#running + 1] = r.k
    local body = bodies[n - first + 1]
    bytes = bytes + (body and #body or 0)
    claims[#claims + 1] = claim_of(r, body)
  end
  first = last + 1
end
for n = #candidates, first, -1 do
  call('LPUSH', candidates[n][2], candidates[n][1].id)
  local kind = candidates[n][3]
  kind.room, more = kind.room + 1, true
end
if #claims > 0 then
  call('SET', P .. 'tokens', string.format('%d', counter))
  call('HSET', P .. 'run:' .. owner, unpack(running))
end
if call('EXISTS', P .. 'run:' .. owner) == 1 then
  call('ZADD', P .. 'owners', now + lease, owner)
  call('HSET', P .. 'seen', owner, now)
end
for _, kind in ipairs(asked) do
  local length = kind.lengths[0] + kind.lengths[1] + kind.lengths[2] + kind.lengths[3]
  if length > 0 and not wakes[kind.name] then wakes[kind.name] = 'ready' end
  if not paused and length > 0 and #claims < max and kind.room > 0 then more = true end
end
flush()
return { now, next_due() or -1, more and 1 or 0, paused and 1 or 0, finished, claims }
