-- What all scripts share. KEYS[1] is the prefix of all keys of the queue, ARGV[1] the time in milliseconds, or empty
-- for the server's clock. A record is the hash t:<id>; its fields are listed in docs/jobs.md. Fields that hold their
-- default are left out.
local P, call = KEYS[1], redis.call
local now
if ARGV[1] == '' then
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
else
  now = tonumber(ARGV[1])
end
local TURN, SOON = 200, 5000
local listening = call('EXISTS', P .. 'listening') == 1
-- Gathered writes: count changes, ids to append to lines, ids that owners no longer run, types to wake, ids to forget.
local counts, lines, left, wakes, succeeded, gone = {}, {}, {}, {}, {}, {}

local function load(id)
  local flat = call('HGETALL', P .. 't:' .. id)
  if #flat == 0 then return nil end
  local r = { id = id }
  for i = 1, #flat, 2 do r[flat[i]] = flat[i + 1] end
  return r
end

local function number(value, default)
  return tonumber(value) or default
end

local function bump(state, kind, by)
  local field = state .. ':' .. kind
  counts[field] = (counts[field] or 0) + by
end

-- Reports a move to subscribers. Entries are numbered, so that a reader sees what it missed.
local function tell(id, kind, from, to, attempts)
  local entry = string.format('%d-0', call('INCR', P .. 'events:seq'))
  call('XADD', P .. 'events', 'MAXLEN', '~', 10000, entry, 'i', id, 'y', kind, 'f', from, 't', to, 'a', attempts,
    'u', now)
end

-- Counts a move and reports it. The caller stores the fields.
local function move(r, to)
  bump(r.s, r.y, -1)
  bump(to, r.y, 1)
  if listening then tell(r.id, r.y, r.s, to, number(r.a, 0)) end
  r.s, r.u = to, now
end

local function lane(r)
  return P .. 'ready:' .. (r.p or '1') .. ':' .. r.y
end

local function line_up(r)
  local key = lane(r)
  local line = lines[key]
  if not line then
    line = {}
    lines[key] = line
  end
  line[#line + 1] = r.id
  if not wakes[r.y] then wakes[r.y] = 'ready' end
end

local function flush_lines()
  for key, ids in pairs(lines) do call('RPUSH', key, unpack(ids)) end
  lines = {}
end

local function schedule(set, r, due)
  local head = call('ZRANGE', P .. set, 0, 0, 'WITHSCORES')
  if due < now + SOON and (not head[2] or due < tonumber(head[2])) then wakes[r.y] = 'due' end
  call('ZADD', P .. set, due, r.id)
end

local function join_serial(r)
  if not r.q then return 'q' end
  local key = P .. 'serial:' .. r.q
  if call('LINDEX', key, 0) == r.id then return 'q' end
  if call('RPUSH', key, r.id) == 1 then return 'q' end
  return 'b'
end

local function leave_serial(r)
  if not r.q then return end
  local key = P .. 'serial:' .. r.q
  if call('LINDEX', key, 0) ~= r.id then return end
  call('LPOP', key)
  while true do
    local id = call('LINDEX', key, 0)
    if not id then return end
    local next = load(id)
    if next and next.s == 'b' then
      move(next, 'q')
      call('HSET', P .. 't:' .. id, 's', 'q', 'u', now)
      line_up(next)
      return
    end
    call('LPOP', key)
  end
end

local function admit(r)
  local to = join_serial(r)
  move(r, to)
  call('HSET', P .. 't:' .. r.id, 's', to, 'u', now, 'n', '')
  if to == 'q' then line_up(r) end
end

-- True if the key is taken now; the holder otherwise.
local function take_unique(key, id)
  local holder = call('HGET', P .. 'unique', key)
  if holder then
    local window = call('ZSCORE', P .. 'windows', key)
    if not window or tonumber(window) > now then return holder end
    call('ZREM', P .. 'windows', key)
  end
  call('HSET', P .. 'unique', key, id)
  return true
end

-- Forgets a terminal task, once the script ends. Lists by state are the caller's.
local function forget(r)
  leave_serial(r)
  bump(r.s, r.y, -1)
  gone[#gone + 1] = r.id
end

local function finish(r, to, keep)
  move(r, to)
  call('HSET', P .. 't:' .. r.id, 's', to, 'u', now, 'o', '', 'x', '', 'n', '')
  if to ~= 'd' then
    if r.S then call('DEL', P .. 'steps:' .. r.id) end
    if r.P then call('HDEL', P .. 'progress', r.id) end
  end
  if r.i and call('HGET', P .. 'unique', r.i) == r.id then
    if to == 's' and number(r.v, 0) > now then
      call('ZADD', P .. 'windows', r.v, r.i)
    else
      call('HDEL', P .. 'unique', r.i)
    end
  end
  if not (to == 'd' and r.h) then leave_serial(r) end
  if to == 'd' then
    call('ZADD', P .. 'dead', now, r.id)
  elseif to == 'c' then
    call('RPUSH', P .. 'cancelled', r.id)
  elseif keep == 0 then
    forget(r)
  else
    succeeded[#succeeded + 1] = r.id
  end
  if r.W then
    for _, name in ipairs(call('SMEMBERS', P .. 'waiters:' .. r.id)) do
      call('RPUSH', P .. 'ctl:' .. name, 'd' .. r.id)
      call('EXPIRE', P .. 'ctl:' .. name, 60)
    end
    call('DEL', P .. 'waiters:' .. r.id)
  end
end

local function stop_running(r)
  local ids = left[r.o]
  if not ids then
    ids = {}
    left[r.o] = ids
  end
  ids[#ids + 1] = r.id
  if not wakes[r.y] then wakes[r.y] = 'ready' end
end

local function back_in_line(r)
  move(r, 'q')
  call('HSET', P .. 't:' .. r.id, 's', 'q', 'u', now, 'o', '', 'x', '', 'a', r.a, 'g', r.g or 0)
  call('LPUSH', lane(r), r.id)
end

local function later(set, r, to, due)
  move(r, to)
  call('HSET', P .. 't:' .. r.id, 's', to, 'u', now, 'o', '', 'x', '', 'n', due, 'a', r.a, 'g', r.g or 0)
  schedule(set, r, due)
end

-- A worker lost a task: the attempt stays charged.
local function lose(r, error, at_once)
  call('HSET', P .. 'error', r.id, error)
  stop_running(r)
  local attempts = number(r.a, 0)
  if r.x and r.x ~= '' then
    finish(r, 'c')
  elseif attempts >= number(r.m, 5) then
    finish(r, 'd')
  elseif at_once then
    back_in_line(r)
  else
    later('retry', r, 'e', now + math.min(1000 * 2 ^ (attempts - 1), 3600000))
  end
end

local function flush_left()
  for owner, ids in pairs(left) do
    call('HDEL', P .. 'run:' .. owner, unpack(ids))
    if call('EXISTS', P .. 'run:' .. owner) == 0 then
      call('ZREM', P .. 'owners', owner)
      call('HDEL', P .. 'seen', owner)
    end
  end
  left = {}
end

local function flush_gone()
  if #gone == 0 then return end
  local keys = {}
  for _, id in ipairs(gone) do
    keys[#keys + 1] = P .. 't:' .. id
    keys[#keys + 1] = P .. 'steps:' .. id
  end
  call('DEL', unpack(keys))
  for _, hash in ipairs({ 'payload', 'result', 'error', 'progress' }) do
    call('HDEL', P .. hash, unpack(gone))
  end
  gone = {}
end

local function flush_succeeded()
  if #succeeded > 0 then call('RPUSH', P .. 'succeeded', unpack(succeeded)) end
  succeeded = {}
end

local function is_ready(kind)
  for level = 0, 3 do
    if call('LLEN', P .. 'ready:' .. level .. ':' .. kind) > 0 then return true end
  end
  return false
end

local function under_limit(kind)
  local limit = call('HGET', P .. 'limits', kind)
  if not limit then return true end
  local running = number(call('HGET', P .. 'counts', 'r:' .. kind), 0) + (counts['r:' .. kind] or 0)
  return running < tonumber(limit)
end

-- Leaves a marker for each type that has something to claim, unless there is one.
local function flush_wakes()
  local paused
  for kind, why in pairs(wakes) do
    local key = P .. 'wake:' .. kind
    if call('LLEN', key) == 0 then
      if paused == nil then paused = call('EXISTS', P .. 'paused') == 1 end
      if why == 'due' or (not paused and is_ready(kind) and under_limit(kind)) then
        call('RPUSH', key, '1')
      end
    end
  end
end

local function flush()
  flush_lines()
  flush_left()
  flush_succeeded()
  flush_gone()
  flush_wakes()
  for field, by in pairs(counts) do
    if by ~= 0 then call('HINCRBY', P .. 'counts', field, by) end
  end
end

-- Succeeded and cancelled tasks hold no serial line.
local function drop_done(id, state)
  local kind = call('HGET', P .. 't:' .. id, 'y')
  if not kind then return end
  bump(state, kind, -1)
  gone[#gone + 1] = id
end

local function trim_list(name, state, keep, keep_ms)
  local key, old, budget = P .. name, now - keep_ms, TURN
  local excess = math.min(call('LLEN', key) - keep, TURN)
  if excess > 0 then
    for _, id in ipairs(call('LPOP', key, excess)) do drop_done(id, state) end
    budget = TURN - excess
  end
  for _ = 1, budget do
    local id = call('LINDEX', key, 0)
    if not id then return end
    local updated = call('HGET', P .. 't:' .. id, 'u')
    if updated and tonumber(updated) > old then return end
    call('LPOP', key)
    drop_done(id, state)
  end
end

local function trim(keep, keep_ms, keep_dead, keep_dead_ms)
  flush_succeeded()
  trim_list('succeeded', 's', keep, keep_ms)
  trim_list('cancelled', 'c', keep, keep_ms)
  local excess = call('ZCARD', P .. 'dead') - keep_dead
  for _ = 1, TURN do
    local head = call('ZRANGE', P .. 'dead', 0, 0, 'WITHSCORES')
    if not head[1] or (excess <= 0 and head[2] + keep_dead_ms > now) then return end
    call('ZREM', P .. 'dead', head[1])
    excess = excess - 1
    local r = load(head[1])
    if r then forget(r) end
  end
end

-- Gives back what the owner whose lease ended first held.
local function reap_one()
  local owner = call('ZRANGEBYSCORE', P .. 'owners', '-inf', now, 'LIMIT', 0, 1)[1]
  if not owner then return 0 end
  local ids = call('HKEYS', P .. 'run:' .. owner)
  table.sort(ids)
  local count = math.min(#ids, TURN)
  for i = 1, count do
    local r = load(ids[i])
    if r then lose(r, 'the lease of worker ' .. owner .. ' ended', false) end
  end
  flush_left()
  if #ids == 0 then call('ZREM', P .. 'owners', owner) end
  return count
end

local function promote_from(set)
  local ids = call('ZRANGEBYSCORE', P .. set, '-inf', now, 'LIMIT', 0, TURN)
  if #ids == 0 then return 0 end
  call('ZREM', P .. set, unpack(ids))
  for _, id in ipairs(ids) do
    local r = load(id)
    if r then admit(r) end
  end
  return #ids
end

local function promote()
  local keys = call('ZRANGEBYSCORE', P .. 'windows', '-inf', now, 'LIMIT', 0, TURN)
  if #keys > 0 then
    call('HDEL', P .. 'unique', unpack(keys))
    call('ZREM', P .. 'windows', unpack(keys))
  end
  return promote_from('scheduled') + promote_from('retry')
end

local function next_due()
  local due
  for _, set in ipairs({ 'scheduled', 'retry', 'owners' }) do
    local head = call('ZRANGE', P .. set, 0, 0, 'WITHSCORES')[2]
    if head and (not due or tonumber(head) < due) then due = tonumber(head) end
  end
  return due
end

-- Adds one task, whose twelve fields begin at ARGV[at]. Answers what became of it.
local payloads = {}
local function enqueue(at)
  local id, kind, payload, media, max, level, delay, unique, window, serial, hold, trace =
    ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4], ARGV[at + 5], tonumber(ARGV[at + 6]),
    ARGV[at + 7], ARGV[at + 8], ARGV[at + 9], ARGV[at + 10], ARGV[at + 11]
  if call('EXISTS', P .. 't:' .. id) == 1 then return 'E' end
  if unique ~= '' then
    local taken = take_unique(unique, id)
    if taken ~= true then return 'D' .. taken end
  end
  local r = { id = id, y = kind, p = level }
  local fields = { 's', '', 'y', kind, 'c', now }
  local function add(field, value, default)
    if value ~= default then
      fields[#fields + 1] = field
      fields[#fields + 1] = value
    end
  end
  if serial ~= '' then r.q = serial end
  local to
  if delay > 0 then
    to = 'w'
    schedule('scheduled', r, now + delay)
    add('n', now + delay)
  else
    to = join_serial(r)
    if to == 'q' then line_up(r) end
  end
  fields[2] = to
  add('m', max, '5')
  add('p', level, '1')
  add('q', serial, '')
  add('h', hold, '')
  add('i', unique, '')
  if window ~= '' then
    add('w', window)
    add('v', now + tonumber(window))
  end
  add('T', trace, '')
  add('C', media, '')
  call('HSET', P .. 't:' .. id, unpack(fields))
  payloads[#payloads + 1] = id
  payloads[#payloads + 1] = payload
  bump(to, kind, 1)
  if listening then tell(id, kind, '', to, 0) end
  return 'N' .. to
end

local function flush_payloads()
  if #payloads > 0 then call('HSET', P .. 'payload', unpack(payloads)) end
end

-- The claim on a running task, as an array.
local function claim_of(r, payload)
  return { r.id, r.k, r.y, payload or '', r.C or '', number(r.a, 0), number(r.r, 0), number(r.m, 5), r.c, r.T or '' }
end

local function is_released(owner)
  return call('ZSCORE', P .. 'released', owner) and true or false
end

local function released_error(owner)
  return redis.error_reply('RELEASED the worker ' .. owner .. ' was declared gone')
end
