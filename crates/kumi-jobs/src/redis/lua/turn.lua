-- turn: reports, ended leases, what is due, claims.
-- ARGV: now owner nonce lease keep keep_ms keep_dead keep_dead_ms max types reports (type room)* (id token kind a b)*
-- Reply: now, next due or -1, more, paused, what became of each report (one text, by spaces), claims (claim_of in lib.lua).
-- The first write is a DEL, which a full server allows; it lets the script finish what it began.
call('DEL', P .. 'none')
local owner, nonce, lease = ARGV[2], '-' .. ARGV[3], tonumber(ARGV[4])
if is_released(owner) then return released_error(owner) end
own = owner
local keep, max, kinds, reports = tonumber(ARGV[5]), tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])

-- The attempt is given back. False if the task can run no more.
local function give_back(r)
  if number(r.g, 0) < 100 then
    local runs = runs_of(r)
    r.g, r.a, r.r = number(r.g, 0) + 1, r.a - 1, runs
    call('HSET', RECORD .. r.id, 'a', text(r.a), 'g', text(r.g), 'r', text(runs))
    return true
  end
  if number(r.a, 0) < number(r.m, 5) then return true end
  call('HSET', P .. 'error', r.id, 'given back more than 100 times')
  return false
end

-- Keeps a result until the end of the script. Without one, answers what the field z says: 1 too large, 0 null.
local function result(id, a, b)
  if keep == 0 or a == '' then return nil end
  if a == 'x' then return '1' end
  if b == 'null' then return '0' end
  results[#results + 1] = id
  results[#results + 1] = b
end

-- Tokens of the tasks that ended in this turn without a look at their record, or whose record goes with its end.
local swift, seen, successes = {}, {}, {}

local function report(id, token, kind, a, b)
  local r = load(id)
  if not r then return 'U' end
  if r.k ~= token then return 'R' end
  if r.s ~= 'r' then return 'D' end
  stop_running(r)
  if kind == 'S' then
    local z = result(id, a, b)
    if z then call('HSET', RECORD .. id, 'z', z) end
    finish(r, 's', keep)
    if keep == 0 then swift[id] = token end
  elseif kind == 'F' then
    call('HSET', P .. 'error', id, b)
    if a == '' then
      finish(r, 'd')
    elseif r.x then
      finish(r, 'c')
    elseif number(r.a, 0) < number(r.m, 5) then
      later('retry', r, 'e', now + tonumber(a))
    else
      finish(r, 'd')
    end
  elseif kind == 'C' or r.x then
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

-- The success of a task of which run:<owner> says all that is needed. Nil if it does not.
local function succeed(id, token, held, a, b)
  local length = #token
  if string.byte(held, length + 1) ~= 32 or string.sub(held, 1, length) ~= token then return nil end
  local kind = string.sub(held, length + 2)
  swift[id] = token
  local ids = left[owner]
  if not ids then
    ids = {}
    left[owner] = ids
  end
  ids[#ids + 1] = id
  successes[kind] = (successes[kind] or 0) + 1
  if keep == 0 then
    gone[#gone + 1] = id
    return 'As'
  end
  succeeded[#succeeded + 1] = id
  local z = result(id, a, b)
  if z then
    call('HSET', RECORD .. id, 's', 's', 'u', NOW, 'z', z)
  else
    call('HSET', RECORD .. id, 's', 's', 'u', NOW)
  end
  return 'As'
end

local finished, at, held = {}, 12 + 2 * kinds, {}
if reports > 0 and not listening then
  local ids = {}
  for n = 1, reports do ids[n] = ARGV[at + 5 * (n - 1)] end
  held = call('HMGET', P .. 'run:' .. owner, unpack(ids))
end
for n = 1, reports do
  local id, token, kind, a, b = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
  local done
  if swift[id] then
    done = keep == 0 and 'U' or swift[id] == token and 'D' or 'R'
  elseif kind == 'S' and held[n] and not seen[id] then
    done = succeed(id, token, held[n], a, b)
  end
  finished[n] = done or report(id, token, kind, a, b)
  seen[id] = true
  at = at + 5
end
for kind, count in pairs(successes) do
  bump('r', kind, -count)
  if keep > 0 then bump('s', kind, count) end
  if not wakes[kind] then wakes[kind] = 'ready' end
end
budget = budget - reports
flush_left()
-- A lease over nothing must not stand before another that ended.
local ends = head('owners')
if own_left and ends and ends <= now and call('EXISTS', P .. 'run:' .. owner) == 0 then end_lease(owner) end
reap_one()
promote()
local due = next_due()
local more = due ~= nil and due <= now
trim(keep, tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8]))
flush_lines()

local asked, names = {}, { P .. 'served' }
for n = 1, kinds do
  local kind = { name = ARGV[10 + 2 * n], room = tonumber(ARGV[11 + 2 * n]), keys = {}, lengths = {}, takes = {} }
  local keys, lengths = kind.keys, kind.lengths
  for level = 0, 3 do
    keys[level], lengths[level], kind.takes[level] = P .. 'ready:' .. DIGITS[level] .. ':' .. kind.name, 0, 0
  end
  -- Most types have tasks of the normal priority only.
  if call('EXISTS', keys[0], keys[2], keys[3]) > 0 then
    for _, level in ipairs({ 0, 2, 3 }) do lengths[level] = call('LLEN', keys[level]) end
  end
  lengths[1] = call('LLEN', keys[1])
  kind.limit = call('HGET', P .. 'limits', kind.name)
  if kind.limit then kind.room = math.min(kind.room, math.max(0, kind.limit - running_of(kind.name))) end
  asked[n] = kind
  names[#names + 1] = NOW
  names[#names + 1] = kind.name
end
if kinds > 0 then call('ZADD', unpack(names)) end

-- From which lines to take: the claim counter walks over the priorities, and types take turns within one.
local SLOTS = { 0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1, 0 }
local counter = number(claims_so_far, 0)
local kind_of, level_of, turn_of = {}, {}, { [0] = 0, 0, 0, 0 }
local function pick(level)
  for offset = 0, kinds - 1 do
    local index = (turn_of[level] + offset) % kinds
    local kind = asked[index + 1]
    if kind.room > 0 and kind.lengths[level] > 0 then return index end
  end
end
if not paused then
  for step = 1, math.min(max, TURN, budget) do
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
    kind.takes[level] = kind.takes[level] + 1
    turn_of[level] = index + 1
    kind_of[step], level_of[step] = kind, level
  end
end
-- The records of what is taken, with where each came from.
local candidates, from, ids = {}, {}, {}
for step, kind in ipairs(kind_of) do
  local level = level_of[step]
  if kind.takes[level] then
    kind[level] = { at = 0, ids = call('LPOP', kind.keys[level], kind.takes[level]) }
    kind.takes[level] = nil
  end
  local line = kind[level]
  line.at = line.at + 1
  local r = load(line.ids[line.at])
  -- An id that was cancelled in line is skipped.
  if r and r.s == 'q' then
    candidates[#candidates + 1] = r
    from[#candidates] = step
    ids[#candidates] = r.id
  else
    kind.room = kind.room + 1
  end
end
-- Payloads in small groups, so that large ones stop the claim at 1 MiB of reply.
local claims, running, claimed, bytes, first = {}, {}, {}, 0, 1
while first <= #candidates and bytes < 1048576 do
  local last = math.min(first + 7, #candidates)
  local bodies = call('HMGET', P .. 'payload', unpack(ids, first, last))
  for n = first, last do
    local r = candidates[n]
    local attempts, runs = number(r.a, 0) + 1, r.r and r.r + 1
    counter = counter + 1
    r.k, r.a, r.r, r.o = text(counter) .. nonce, attempts, runs, owner
    if listening then tell(r.id, r.y, 'q', 'r', attempts) end
    r.s, claimed[r.y] = 'r', (claimed[r.y] or 0) + 1
    if runs then
      call('HSET', RECORD .. r.id, 's', 'r', 'u', NOW, 'a', text(attempts), 'k', r.k, 'o', owner, 'r', text(runs))
    else
      call('HSET', RECORD .. r.id, 's', 'r', 'u', NOW, 'a', text(attempts), 'k', r.k, 'o', owner)
    end
    running[#running + 1] = r.id
    running[#running + 1] = held_as(r)
    local body = bodies[n - first + 1]
    bytes = bytes + (body and #body or 0)
    claims[n] = claim_of(r, body, attempts, runs or attempts)
  end
  first = last + 1
end
for n = #candidates, first, -1 do
  local kind, level = kind_of[from[n]], level_of[from[n]]
  call('LPUSH', kind.keys[level], ids[n])
  kind.lengths[level], kind.room, more = kind.lengths[level] + 1, kind.room + 1, true
end
for kind, count in pairs(claimed) do
  bump('q', kind, -count)
  bump('r', kind, count)
end
if #claims > 0 then
  call('SET', P .. 'tokens', text(counter))
  -- A small hash is a list that is searched from its start. A long value makes it a hash table, which many claims need.
  local key, is_many = P .. 'run:' .. owner, #claims > 16
  if is_many then call('HSET', key, '', string.rep(' ', 80)) end
  call('HSET', key, unpack(running))
  if is_many then call('HDEL', key, '') end
end
if #claims > 0 or call('EXISTS', P .. 'run:' .. owner) == 1 then
  call('ZADD', P .. 'owners', text(now + lease), owner)
  call('HSET', P .. 'seen', owner, NOW)
  heads.owners = nil
elseif own_left then
  end_lease(owner)
end
for _, kind in ipairs(asked) do
  local length = kind.lengths[0] + kind.lengths[1] + kind.lengths[2] + kind.lengths[3]
  if wakes[kind.name] ~= 'due' then
    local is_free = not kind.limit or running_of(kind.name) < tonumber(kind.limit)
    local is_left = length > 0 and not paused and is_free
    local key = P .. 'wake:' .. kind.name
    if is_left and call('LLEN', key) == 0 then call('RPUSH', key, '1') end
    wakes[kind.name] = false
  end
  if not paused and length > 0 and #claims < max and kind.room > 0 then more = true end
end
flush()
return { now, next_due() or -1, more and 1 or 0, paused and 1 or 0, table.concat(finished, ' '), claims }
