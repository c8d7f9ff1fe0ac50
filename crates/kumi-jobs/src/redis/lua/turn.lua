-- turn: reports, ended leases, what is due, claims.
-- ARGV: now owner nonce lease max types reports (type room)* (id token kind a b)*
-- Reply: now, next due or -1, more, paused, what became of each report (one text, by spaces), claims (claim_of in lib.lua),
-- how many tasks the owner holds, what other owners lost.
if is_draining and ARGV[5] ~= '0' then return format_error() end
begin()
local owner, nonce, lease = ARGV[2], '-' .. ARGV[3], tonumber(ARGV[4])
if is_released(owner) then return released_error(owner) end
own = owner
beat(true)
local max, kinds, reports = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])

-- The attempt is given back. False if the task can run no more.
local function give_back(r)
  if number(r.g, 0) < 100 then
    local runs = runs_of(r)
    r.g, r.a, r.r = number(r.g, 0) + 1, number(r.a, 0) - 1, runs
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

-- Tokens of the tasks that ended in this turn without a look at their record, or whose record goes with its end; and the
-- ids of the former.
local swift, seen, successes, quick, quicks = {}, {}, {}, {}, 0

local function report(id, token, kind, a, b)
  local r = load(id)
  if not r then return 'U' end
  if r.k ~= token then return 'R' end
  if r.s ~= 'r' then return 'D' end
  stop_running(r)
  if kind == 'S' then
    local z = result(id, a, b)
    if z then call('HSET', RECORD .. id, 'z', z) end
    finish(r, 's')
    if keep == 0 then swift[id] = token end
  elseif kind == 'F' then
    total('failed', 1)
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
  if string.byte(held, length + 1) ~= 32 or string.find(held, token, 1, true) ~= 1 then return nil end
  local kind = string.sub(held, length + 2)
  swift[id] = token
  quicks = quicks + 1
  quick[quicks] = id
  successes[kind] = (successes[kind] or 0) + 1
  if keep == 0 then return 'As' end
  local z = result(id, a, b)
  if z then
    call('HSET', RECORD .. id, 's', 's', 'u', NOW, 'z', z)
  else
    call('HSET', RECORD .. id, 's', 's', 'u', NOW)
  end
  return 'As'
end

-- Hands over what `succeed` has gathered, before anything is added behind it.
local function settle_quick()
  if quicks == 0 then return end
  left[owner] = joined(left[owner], quick)
  if keep == 0 then
    gone = joined(gone, quick)
  else
    succeeded = joined(succeeded, quick)
  end
  quick, quicks = {}, 0
end

local finished, at, held = {}, 8 + 2 * kinds, {}
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
  if not done then
    settle_quick()
    done = report(id, token, kind, a, b)
    seen[id] = true
  end
  finished[n] = done
  at = at + 5
end
settle_quick()
for kind, count in pairs(successes) do
  total('succeeded', count)
  bump('r', kind, -count)
  if keep > 0 then bump('s', kind, count) end
  if not wakes[kind] then wakes[kind] = 'ready' end
end
-- What claims may take of the budget stays theirs, however much is due.
local reserved = paused and 0 or math.min(max, CLAIMS)
budget = budget - reports - reserved
flush_left()
-- A lease over nothing must not stand before another that ended.
local ends = head('owners')
if own_left and ends and ends <= now and call('EXISTS', P .. 'run:' .. owner) == 0 then end_lease(owner) end
reap_one()
promote()
budget = budget + reserved
local due = next_due()
local more = due ~= nil and due <= now
trim()
flush_lines()

-- Lines that have tasks, with the type whose room they take, by priority.
local asked, names, lanes, only = {}, { P .. 'served' }, { [0] = {}, {}, {}, {} }, nil
local lines_with_tasks = 0
for n = 1, kinds do
  local kind = { name = ARGV[6 + 2 * n], room = tonumber(ARGV[7 + 2 * n]), lanes = {}, limit = false }
  kind.limit = call('HGET', P .. 'limits', kind.name)
  if kind.limit then kind.room = math.min(kind.room, math.max(0, kind.limit - running_of(kind.name))) end
  local function look(level)
    local key = P .. 'ready:' .. DIGITS[level] .. ':' .. kind.name
    local lane = { key = key, kind = kind, length = call('LLEN', key), takes = 0, at = 0, ids = false }
    kind.lanes[#kind.lanes + 1] = lane
    if lane.length > 0 and kind.room > 0 then
      lanes[level][#lanes[level] + 1] = lane
      only, lines_with_tasks = lane, lines_with_tasks + 1
    end
  end
  -- Most types have tasks of the normal priority only.
  local line = P .. 'ready:'
  if call('EXISTS', line .. '0:' .. kind.name, line .. '2:' .. kind.name, line .. '3:' .. kind.name) > 0 then
    look(0)
    look(2)
    look(3)
  end
  look(1)
  asked[n] = kind
  names[#names + 1] = NOW
  names[#names + 1] = kind.name
end
-- A worker that asks for nothing, because it is drained or has no slot, does not serve its types.
if kinds > 0 and max > 0 then call('ZADD', unpack(names)) end

-- From which lines to take: the claim counter walks over the priorities, and types take turns within one.
local SLOTS = { 0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1, 0 }
local counter = number(claims_so_far, 0)
local order, turn_of, slots = {}, nil, {}
if lines_with_tasks ~= 1 then only = nil end
local function pick(level)
  local of = lanes[level]
  for offset = 0, #of - 1 do
    local index = (turn_of[level] + offset) % #of + 1
    local lane = of[index]
    if lane.kind.room > 0 and lane.takes < lane.length then
      turn_of[level] = index
      return lane
    end
  end
end

-- How many ids are to be taken, at most so many. `order` has the line of each, unless there is one line only.
local function plan(most)
  if only then
    local count = math.min(most, only.kind.room, only.length)
    only.kind.room = only.kind.room - count
    return count
  end
  turn_of = { [0] = 0, 0, 0, 0 }
  for step = 1, most do
    local lane = pick(slots[step]) or pick(0) or pick(1) or pick(2) or pick(3)
    if not lane then return step - 1 end
    lane.takes, lane.kind.room = lane.takes + 1, lane.kind.room - 1
    order[step] = lane
  end
  return most
end

-- The ids that are taken, in the order of their claims.
local function take(count)
  if only then return call('LPOP', only.key, text(count)) end
  local ids = {}
  for step = 1, count do
    local lane = order[step]
    if not lane.ids then lane.ids, lane.at = call('LPOP', lane.key, text(lane.takes)), 0 end
    lane.at = lane.at + 1
    ids[step] = lane.ids[lane.at]
  end
  for step = 1, count do order[step].ids, order[step].takes = false, 0 end
  return ids
end

local claims, claimed_tasks, running, held_fields, claimed = {}, 0, {}, 0, {}
-- Fields that say that a record has to be read when its task ends; see held_as.
local READ_AT_END = { q = true, i = true, W = true, S = true, P = true, x = true }
-- Claims a task. False if it is not in line: an id that was cancelled there is skipped.
local function claim(id, body)
  local flat = call('HGETALL', RECORD .. id)
  local state, kind, created, attempts, runs, maximum, media, trace, backoff, mark =
    'q', nil, '0', 0, nil, '5', nil, nil, nil, ' '
  for n = 1, #flat, 2 do
    local field, value = flat[n], flat[n + 1]
    if value == '' then
      -- It has its default.
    elseif field == 'y' then
      kind = value
    elseif field == 'c' then
      created = value
    elseif field == 's' then
      state = value
    elseif field == 'a' then
      attempts = number(value, 0)
    elseif field == 'r' then
      runs = tonumber(value)
    elseif field == 'm' then
      maximum = value
    elseif field == 'C' then
      media = value
    elseif field == 'T' then
      trace = value
    elseif field == 'b' then
      backoff = value
    elseif READ_AT_END[field] then
      mark = '!'
    end
  end
  if not kind or state ~= 'q' then return false end
  counter, attempts = counter + 1, attempts + 1
  local token, tried = text(counter) .. nonce, text(attempts)
  local ran = tried
  if listening then tell(id, kind, 'q', 'r', attempts) end
  if runs then
    ran = text(runs + 1)
    call('HSET', RECORD .. id, 's', 'r', 'u', NOW, 'a', tried, 'k', token, 'o', owner, 'r', ran)
  else
    call('HSET', RECORD .. id, 's', 'r', 'u', NOW, 'a', tried, 'k', token, 'o', owner)
  end
  claimed[kind] = (claimed[kind] or 0) + 1
  running[held_fields + 1], running[held_fields + 2] = id, token .. mark .. kind
  held_fields = held_fields + 2
  claimed_tasks = claimed_tasks + 1
  claims[claimed_tasks] = claim_of(id, token, kind, tried, ran, maximum, created, body, media, trace, backoff)
  return true
end
-- Whether the task of an id in line waits there.
local function is_waiting(id)
  local seen = call('HMGET', RECORD .. id, 's', 'y')
  local state, kind = seen[1], seen[2]
  return kind and kind ~= '' and (not state or state == '' or state == 'q')
end
-- Takes ids from the head of a line until that is a task that waits, or this turn may skip no more.
local skips = SKIPS
local function skip(lane)
  while skips > 0 and lane.length > 0 do
    local ids, count = call('LRANGE', lane.key, '0', text(math.min(skips, TURN) - 1)), 0
    while count < #ids and not is_waiting(ids[count + 1]) do count = count + 1 end
    if count > 0 then call('LPOP', lane.key, text(count)) end
    skips, lane.length = skips - count, lane.length - count
    -- A line that is shorter than was counted has nothing left.
    if #ids == 0 then lane.length = 0 end
    if #ids == 0 or count < #ids then return end
  end
end
-- Claims in rounds: where a line had ids of tasks that do not wait there, those that follow them are skipped, and another
-- round takes as many tasks, for the same priorities. Payloads in small groups, so that large ones stop the claim at 1 MiB
-- of reply.
local missing, bytes, REPLY = paused and 0 or math.min(max, TURN, budget), 0, 1048576
for step = 1, only and 0 or missing do slots[step] = SLOTS[(counter + step) % 15 + 1] end
while missing > 0 do
  local planned = plan(missing)
  if planned == 0 then break end
  local ids, first, skipped, again = take(planned), 1, {}, {}
  missing = 0
  while first <= planned and bytes < REPLY do
    local last = math.min(first + 7, planned)
    local bodies = call('HMGET', P .. 'payload', unpack(ids, first, last))
    for n = first, last do
      local body, lane = bodies[n - first + 1], only or order[n]
      lane.length = lane.length - 1
      if claim(ids[n], body) then
        bytes = bytes + (body and #body or 0)
      else
        missing = missing + 1
        again[missing] = slots[n]
        lane.kind.room, skips = lane.kind.room + 1, skips - 1
        if not lane.is_skipped then skipped[#skipped + 1] = lane end
        lane.is_skipped = true
      end
    end
    first = last + 1
  end
  for n = planned, first, -1 do
    local lane = only or order[n]
    call('LPUSH', lane.key, ids[n])
    lane.kind.room, more = lane.kind.room + 1, true
  end
  if #skipped == 0 or bytes >= REPLY then break end
  for _, lane in ipairs(skipped) do
    lane.is_skipped = false
    skip(lane)
  end
  if skips <= 0 then break end
  slots = again
end
for kind, count in pairs(claimed) do
  bump('q', kind, -count)
  bump('r', kind, count)
end
if claimed_tasks > 0 then
  call('SET', P .. 'tokens', text(counter))
  -- A small hash is a list that is searched from its start. A long value makes it a hash table, which many claims need.
  local key, is_many = P .. 'run:' .. owner, claimed_tasks > 16
  if is_many then call('HSET', key, '', string.rep(' ', 80)) end
  call('HSET', key, unpack(running))
  if is_many then call('HDEL', key, '') end
end
local holds = call('HLEN', P .. 'run:' .. owner)
if holds > 0 then
  call('ZADD', P .. 'owners', text(now + lease), owner)
  call('HSET', P .. 'seen', owner, NOW)
  heads.owners = nil
elseif own_left then
  end_lease(owner)
end
for _, kind in ipairs(asked) do
  local length = 0
  for _, lane in ipairs(kind.lanes) do length = length + lane.length end
  if wakes[kind.name] ~= 'due' then
    local is_free = not kind.limit or running_of(kind.name) < tonumber(kind.limit)
    local is_left = length > 0 and not paused and is_free
    local key = P .. 'wake:' .. kind.name
    if is_left and call('LLEN', key) == 0 then call('RPUSH', key, '1') end
    wakes[kind.name] = false
  end
  if not paused and length > 0 and claimed_tasks < max and kind.room > 0 then more = true end
end
flush()
return { now, next_due() or -1, more and 1 or 0, paused and 1 or 0, table.concat(finished, ' '), claims, holds, lost }
