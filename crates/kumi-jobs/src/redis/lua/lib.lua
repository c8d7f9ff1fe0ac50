-- What all scripts share. KEYS[1] is the prefix of all keys of the queue, ARGV[1] the time in milliseconds, or empty
-- for the server's clock. A record is the hash t:<id>; its fields are in docs/jobs-protocol.md. Fields that hold their
-- default are left out, and one that is empty has it too: another program may have written it. A number that is handed
-- to a command is formatted anew each time, which costs as much as a command: times and counts are written as text.
--
-- FORMAT is the version of the keys, the records and these scripts. The key version has the queue's. A script does nothing
-- in a queue of another format. While a queue is moved from this format to another one, its version is "3>4": what runs is
-- renewed and reported, and nothing new begins.
local FORMAT = '3'
local P, call = KEYS[1], redis.call
local RECORD = P .. 't:'
local now
if ARGV[1] == '' then
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
else
  now = tonumber(ARGV[1])
end
local NOW = string.format('%d', now)
-- TURN is TURN_LIMIT in core/settings.rs. SORT is how many ids of an owner one script sorts.
local TURN, SORT, SOON = 50, 400, 5000
-- In milliseconds, as in core/settings.rs and core/machine/pulse.rs: how often a worker renews its lease, the longest time without a script that
-- is no gap, and the shortest gap that extends a lease again. GRACES is how many leases one script extends, which takes about
-- 2.5 ms; later scripts go on with the others.
local RENEWAL, GAP_MS, LONG_GAP_MS, GRACES = 1000, 3000, 10000, 500
-- SKIP_LIMIT in core/settings.rs: ids of tasks that were cancelled in line which one turn takes out, about 1 ms.
local SKIPS = 500
-- Tasks that this script may still report, give back, move into line and claim; and those that it may still forget
-- because they were kept long enough, and ids that it may still take from serial lines because their tasks no longer wait.
-- Together they bound how long the script runs. CLAIMS of a turn's budget belong to claims.
local CLAIMS = 25
local budget, trims, pops = 2 * TURN, TURN, TURN
local DIGITS = { [0] = '0', '1', '2', '3', '4', '5', '6', '7', '8', '9' }
local flags = call('MGET', P .. 'listening', P .. 'paused', P .. 'tokens', P .. 'version', P .. 'pulse',
  P .. 'keep')
local listening, paused, claims_so_far = flags[1] and true or false, flags[2] and true or false, flags[3]
local version = flags[4]
local is_draining = version and string.sub(version, 1, #FORMAT + 1) == FORMAT .. '>'
local function format_error()
  return redis.error_reply('FORMAT ' .. version .. ' is the format of the queue; this script has format ' .. FORMAT)
end
if version and version ~= FORMAT and not is_draining then return format_error() end
-- When a script of a program last ran, within half a second.
local pulse = tonumber(flags[5])
-- What is kept of done tasks, unless the key keep has four other numbers: succeeded tasks (and as many cancelled ones) and
-- for how long, dead tasks and for how long.
local keep, keep_ms, keep_dead, keep_dead_ms = 10000, 3600000, 100000, 604800000
if flags[6] then
  local kept = { string.match(flags[6], '^(%d+) (%d+) (%d+) (%d+)$') }
  if kept[4] then
    keep, keep_ms, keep_dead, keep_dead_ms = tonumber(kept[1]), tonumber(kept[2]), tonumber(kept[3]), tonumber(kept[4])
  end
end
-- The first write of a script. A queue that has no version yet gets this one.
local function begin()
  -- A full server allows a DEL, and after it whatever else the script writes.
  call('DEL', P .. 'none')
  if not version then call('SET', P .. 'version', FORMAT) end
end
-- Gathered writes: count changes by type, ids to append to lines, ids that owners no longer run, types to wake, ids and
-- results of tasks that succeeded, ids to forget.
local counts, lines, left, wakes, succeeded, results, gone = {}, {}, {}, {}, {}, {}, {}
-- What this script adds to the totals of the queue.
local totals = {}

-- A record; nil if there is none, or it has no type.
local function load(id)
  local flat = call('HGETALL', RECORD .. id)
  local r = { id = id }
  for i = 1, #flat, 2 do
    if flat[i + 1] ~= '' then r[flat[i]] = flat[i + 1] end
  end
  if not r.y then return nil end
  if not r.s then r.s = 'q' end
  return r
end

local function number(value, default)
  return tonumber(value) or default
end

-- A whole number as text.
local function text(value)
  return DIGITS[value] or string.format('%d', value)
end

-- Claims so far. Until an attempt is given back, they are the attempts and have no field of their own.
local function runs_of(r)
  return number(r.r, number(r.a, 0))
end

-- A list of the elements of both, of which the first may be missing.
local function joined(list, more)
  if not list or #list == 0 then return { unpack(more) } end
  for _, element in ipairs(more) do list[#list + 1] = element end
  return list
end

local function bump(state, kind, by)
  local of = counts[kind]
  if not of then
    of = {}
    counts[kind] = of
  end
  of[state] = (of[state] or 0) + by
end

local function total(name, by)
  totals[name] = (totals[name] or 0) + by
end

-- How many tasks of a type run, this script's own moves included.
local function running_of(kind)
  local of = counts[kind]
  return number(call('HGET', P .. 'counts', 'r:' .. kind), 0) + (of and of.r or 0)
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
  r.s = to
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

-- The lowest score of a sorted set, or false. Remembered until it may have changed.
local heads = {}
local function head(set)
  if heads[set] == nil then
    heads[set] = tonumber(call('ZRANGE', P .. set, '0', '0', 'WITHSCORES')[2]) or false
  end
  return heads[set]
end

-- When an owner last renewed its lease, and when it was extended since.
local function times_of(seen)
  local renewed, extended = string.match(seen or '', '^(%d+) ?(%d*)$')
  return tonumber(renewed), tonumber(extended)
end

-- After a gap: each lease lasts for its whole length from now, because its worker could not renew it. A lease that was
-- extended and not renewed is moved by the length of the gap, and only if that is long and scripts ran since: the time in
-- which the queue is used counts, so that the leases of crashed workers end also where it is used now and then. After a clock
-- that was set back, no lease and no renewal may lie in the future. Answers whether a lease was extended.
--
-- The leases that end last come first. Where there are more than GRACES, the key grace holds the pulse before the gap, the end
-- from which the next script goes on downwards, and whether a lease was extended; until the last one nobody is reaped. A
-- lease that is extended moves up, so that none is extended twice and none is left out. What another gap left does not count.
local is_extending = false
local function extend_leases(since)
  local gap = pulse and text(pulse) or '-'
  local begun, below, moved = string.match(call('GET', P .. 'grace') or '', '^(%S+) (%S+) (%S+)$')
  if begun ~= gap then below, moved = nil, nil end
  local flat, names = call('ZRANGE', P .. 'owners', below or '+inf', '-inf', 'BYSCORE', 'REV', 'LIMIT', '0', text(GRACES),
    'WITHSCORES'), {}
  for n = 1, #flat, 2 do names[#names + 1] = flat[n] end
  is_extending = #names == GRACES
  if #names == 0 then
    call('DEL', P .. 'grace')
    return moved == '1'
  end
  local seen, leases, times = call('HMGET', P .. 'seen', unpack(names)), {}, {}
  for n, name in ipairs(names) do
    local ends = tonumber(flat[2 * n])
    local renewed, extended = times_of(seen[n])
    renewed = renewed or ends
    local is_back = since and since < 0
    local begins
    if is_back or not extended then
      begins = now
    elseif since and since > LONG_GAP_MS and pulse >= extended + RENEWAL then
      begins = extended + since
    end
    if begins then
      leases[#leases + 1] = text(begins + math.max(0, ends - (extended or renewed)))
      leases[#leases + 1] = name
      times[#times + 1] = name
      times[#times + 1] = text(math.min(renewed, now)) .. ' ' .. text(begins)
    end
  end
  if is_extending then
    local lowest = flat[2 * GRACES]
    -- So many leases end at one moment and none of them moves: one earlier script has extended them all.
    if lowest == below and #leases == 0 then lowest = '(' .. lowest end
    call('SET', P .. 'grace', gap .. ' ' .. lowest .. ' ' .. (#leases > 0 and '1' or moved or '0'))
  elseif begun then
    call('DEL', P .. 'grace')
  end
  if #leases == 0 then return moved == '1' end
  call('ZADD', P .. 'owners', unpack(leases))
  call('HSET', P .. 'seen', unpack(times))
  heads.owners = nil
  return true
end

-- Notices a gap: no script for longer than a worker goes without renewing its lease, or a clock that jumped. Before leases
-- are looked at. A script that a program's own work does not need is no sign of life. While leases are left to extend, the
-- pulse stays, and the next script notices the same gap.
local function beat(is_alive)
  local since = pulse and now - pulse
  if not since or math.abs(since) > GAP_MS then
    if not extend_leases(since) and not is_alive or is_extending then return end
  elseif not is_alive or since < RENEWAL / 2 then
    return
  end
  call('SET', P .. 'pulse', NOW)
  pulse = now
end

local function schedule(set, r, due)
  local first = head(set)
  if not first or due < first then
    heads[set] = due
    if due < now + SOON then wakes[r.y] = 'due' end
  end
  call('ZADD', P .. set, text(due), r.id)
end

local function join_serial(r)
  if not r.q then return 'q' end
  local key = P .. 'serial:' .. r.q
  if call('LINDEX', key, 0) == r.id then return 'q' end
  if call('RPUSH', key, r.id) == 1 then return 'q' end
  return 'b'
end

-- Lets the first task of a serial line run that still waits; ids before it were cancelled in line. If this script may take
-- no more of them, GAP stands at the head, where no task can take its place, and a later script goes on: `unblock` lists
-- such keys.
local GAP = '-'
local is_unblocking = false
local function unblock(serial)
  local key = P .. 'serial:' .. serial
  while true do
    local id = call('LINDEX', key, 0)
    if not id then return end
    local next = load(id)
    if next and next.s == 'b' then
      move(next, 'q')
      call('HSET', RECORD .. id, 's', 'q', 'u', NOW)
      call('ZREM', P .. 'blocked', id)
      line_up(next)
      return
    end
    if pops == 0 then
      call('LPUSH', key, GAP)
      call('RPUSH', P .. 'unblock', serial)
      is_unblocking = true
      return
    end
    pops = pops - 1
    call('LPOP', key)
  end
end

local function leave_serial(r)
  if not r.q then return end
  local key = P .. 'serial:' .. r.q
  if call('LINDEX', key, 0) ~= r.id then return end
  call('LPOP', key)
  unblock(r.q)
  -- A worker that waits goes on with it.
  if is_unblocking then wakes[r.y] = 'due' end
end

-- Goes on with serial lines at which earlier scripts stopped.
local function unblock_more()
  while pops > 0 do
    local serial = call('LPOP', P .. 'unblock')
    if not serial then return end
    local key = P .. 'serial:' .. serial
    if call('LINDEX', key, 0) == GAP then
      call('LPOP', key)
      unblock(serial)
    end
  end
  is_unblocking = call('EXISTS', P .. 'unblock') == 1
end

local function admit(r)
  local to = join_serial(r)
  move(r, to)
  call('HSET', RECORD .. r.id, 's', to, 'u', NOW)
  if to == 'q' then line_up(r) else call('ZADD', P .. 'blocked', NOW, r.id) end
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

local ENDS = { s = 'succeeded', d = 'dead', c = 'cancelled' }
local function finish(r, to)
  total(ENDS[to], 1)
  move(r, to)
  call('HSET', RECORD .. r.id, 's', to, 'u', NOW)
  if r.x then call('HDEL', RECORD .. r.id, 'x') end
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
  call('HSET', RECORD .. r.id, 's', 'q', 'u', NOW)
  call('LPUSH', lane(r), r.id)
end

local function later(set, r, to, due)
  move(r, to)
  call('HSET', RECORD .. r.id, 's', to, 'u', NOW, 'n', text(due))
  schedule(set, r, due)
end

-- How long a task that a worker lost waits: about a second, the same in core/retry.rs.
local function reap_delay(id, attempts)
  local hash = attempts
  for n = 1, #id do hash = (hash * 33 + string.byte(id, n)) % 1000003 end
  return 750 + hash % 500
end

-- A worker lost a task: the attempt stays charged. Without its token, a report of that worker is refused. What became of
-- each is for the log: "id state attempts due error", with a due time if it is retried.
local lost = {}
local function lose(r, error, at_once)
  total('lost', 1)
  call('HSET', P .. 'error', r.id, error)
  call('HDEL', RECORD .. r.id, 'k')
  stop_running(r)
  local attempts, due = number(r.a, 0), 0
  if r.x then
    finish(r, 'c')
  elseif attempts >= number(r.m, 5) then
    finish(r, 'd')
  elseif at_once then
    back_in_line(r)
  else
    due = now + reap_delay(r.id, attempts)
    later('retry', r, 'e', due)
  end
  lost[#lost + 1] = r.id .. ' ' .. r.s .. ' ' .. text(attempts) .. ' ' .. text(due) .. ' ' .. error
end

-- Ends the lease of an owner that runs nothing.
local function end_lease(owner)
  call('ZREM', P .. 'owners', owner)
  call('HDEL', P .. 'seen', owner)
  heads.owners = nil
end

-- A turn's own owner keeps its lease until the turn has claimed.
local own, own_left
local function flush_left()
  for owner, ids in pairs(left) do
    call('HDEL', P .. 'run:' .. owner, unpack(ids))
    if owner == own then
      own_left = true
    elseif call('EXISTS', P .. 'run:' .. owner) == 0 then
      end_lease(owner)
    end
  end
  left = {}
end

local function flush_gone()
  if #gone == 0 then return end
  local keys = {}
  for _, id in ipairs(gone) do
    keys[#keys + 1] = RECORD .. id
    keys[#keys + 1] = P .. 'steps:' .. id
  end
  call('DEL', unpack(keys))
  for _, hash in ipairs({ 'payload', 'result', 'error', 'progress' }) do
    call('HDEL', P .. hash, unpack(gone))
  end
  gone = {}
end

-- The length of the list of succeeded tasks, where it is known.
local kept
local function flush_succeeded()
  if #succeeded > 0 then kept = call('RPUSH', P .. 'succeeded', unpack(succeeded)) end
  if #results > 0 then call('HSET', P .. 'result', unpack(results)) end
  succeeded, results = {}, {}
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
  return running_of(kind) < tonumber(limit)
end

-- Leaves a marker for each type that has something to claim, unless there is one; or as many as `markers`, at most
-- MARKERS_LIMIT.
local MARKERS_LIMIT = 50
local markers = 1
local function flush_wakes()
  for kind, why in pairs(wakes) do
    local key = P .. 'wake:' .. kind
    local missing = why and markers - call('LLEN', key) or 0
    if missing > 0 and (why == 'due' or (not paused and is_ready(kind) and under_limit(kind))) then
      for _ = 1, missing do call('RPUSH', key, '1') end
    end
  end
end

local function flush()
  flush_lines()
  flush_left()
  flush_succeeded()
  flush_gone()
  flush_wakes()
  for kind, of in pairs(counts) do
    for state, by in pairs(of) do
      if by ~= 0 then call('HINCRBY', P .. 'counts', state .. ':' .. kind, by) end
    end
  end
  for name, by in pairs(totals) do call('HINCRBY', P .. 'totals', name, by) end
end

-- Succeeded and cancelled tasks hold no serial line.
local function drop_done(id, state)
  local kind = call('HGET', RECORD .. id, 'y')
  if not kind then return end
  bump(state, kind, -1)
  gone[#gone + 1] = id
end

local function trim_list(name, state, length)
  local key, old = P .. name, now - keep_ms
  length = length or call('LLEN', key)
  if length == 0 then return end
  local excess = math.min(length - keep, trims)
  if excess > 0 then
    for _, id in ipairs(call('LPOP', key, excess)) do drop_done(id, state) end
    trims = trims - excess
  end
  while trims > 0 do
    local id = call('LINDEX', key, 0)
    if not id then return end
    local updated = call('HGET', RECORD .. id, 'u')
    if updated and tonumber(updated) > old then return end
    call('LPOP', key)
    drop_done(id, state)
    trims = trims - 1
  end
end

local function trim()
  flush_succeeded()
  trim_list('succeeded', 's', kept)
  if call('EXISTS', P .. 'cancelled', P .. 'dead') == 0 then return end
  trim_list('cancelled', 'c')
  local excess
  while trims > 0 do
    local oldest = call('ZRANGE', P .. 'dead', '0', '0', 'WITHSCORES')
    if not oldest[1] then return end
    excess = excess or call('ZCARD', P .. 'dead') - keep_dead
    if excess <= 0 and oldest[2] + keep_dead_ms > now then return end
    call('ZREM', P .. 'dead', oldest[1])
    excess, trims = excess - 1, trims - 1
    local r = load(oldest[1])
    if r then forget(r) end
  end
end

-- Ids that an owner runs, sorted: all of them, or some if there are more than a script has time to sort.
local function some_running(owner)
  local key, ids = P .. 'run:' .. owner, nil
  if call('HLEN', key) <= SORT then
    ids = call('HKEYS', key)
  else
    local cursor
    ids = {}
    repeat
      local page = call('HSCAN', key, cursor or '0', 'COUNT', TURN)
      cursor = page[1]
      for n = 1, #page[2], 2 do ids[#ids + 1] = page[2][n] end
    until #ids > 0 or cursor == '0'
  end
  table.sort(ids)
  return ids
end

-- Gives back what the owner whose lease ended first held.
local function reap_one()
  if is_extending then return 0 end
  local ends = head('owners')
  if not ends or ends > now then return 0 end
  local owner = call('ZRANGE', P .. 'owners', '0', '0')[1]
  local ids = some_running(owner)
  local count = math.min(#ids, TURN, budget)
  for i = 1, count do
    local r = load(ids[i])
    if r and r.s == 'r' and r.o == owner then
      lose(r, 'the lease of worker ' .. owner .. ' ended', false)
    else
      call('HDEL', P .. 'run:' .. owner, ids[i])
    end
  end
  budget = budget - count
  flush_left()
  if call('EXISTS', P .. 'run:' .. owner) == 0 then end_lease(owner) end
  return count
end

local function promote_from(set, most)
  local due = head(set)
  most = math.min(TURN, budget, most)
  if not due or due > now or most <= 0 then return 0 end
  local ids = call('ZRANGEBYSCORE', P .. set, '-inf', NOW, 'LIMIT', '0', most)
  call('ZREM', P .. set, unpack(ids))
  heads[set] = nil
  for _, id in ipairs(ids) do
    local r = load(id)
    if r then admit(r) end
  end
  budget = budget - #ids
  return #ids
end

local function promote()
  -- One call where nothing waits for its time.
  if call('EXISTS', P .. 'windows', P .. 'scheduled', P .. 'retry', P .. 'unblock') == 0 then
    heads.scheduled, heads.retry = false, false
    return 0
  end
  local keys = call('ZRANGEBYSCORE', P .. 'windows', '-inf', NOW, 'LIMIT', '0', TURN)
  if #keys > 0 then
    call('HDEL', P .. 'unique', unpack(keys))
    call('ZREM', P .. 'windows', unpack(keys))
  end
  unblock_more()
  -- Where both have tasks that are due, each gets its half.
  local retry, most = head('retry'), budget
  if retry and retry <= now then most = math.ceil(budget / 2) end
  local moved = promote_from('scheduled', most)
  return moved + promote_from('retry', budget)
end

local function next_due()
  local due
  for _, set in ipairs({ 'scheduled', 'retry', 'owners' }) do
    local first = head(set)
    if first and (not due or first < due) then due = first end
  end
  if is_unblocking then return math.min(due or now, now) end
  return due
end

-- What is wrong with the thirteen fields of a task that begin at ARGV[at]; nil if they are right. Looked at before the
-- first write, because what a script wrote before an error stays.
local LEVELS = { [''] = true, ['0'] = true, ['1'] = true, ['2'] = true, ['3'] = true }
local right_kind
local function wrong_field(at)
  local id, kind, max, delay, window = ARGV[at], ARGV[at + 1], ARGV[at + 4], ARGV[at + 6], ARGV[at + 8]
  if not ARGV[at + 12] then return 'a task has thirteen fields' end
  if id == '' or id == GAP or string.find(id, '%s') then return 'an id is not empty, not - and holds no white space' end
  if kind ~= right_kind then
    if kind == '' or string.find(kind, '%s') then return 'a type is not empty and holds no white space' end
    right_kind = kind
  end
  if max ~= '5' and max ~= '' and (not string.find(max, '^[1-9]%d*$') or #max > 10 or tonumber(max) > 4294967295) then
    return 'max_attempts is 1 to 4294967295'
  end
  if not LEVELS[ARGV[at + 5]] then return 'a priority is 0, 1, 2 or 3' end
  if delay ~= '0' and delay ~= '' and (#delay > 13 or not string.find(delay, '^%d+$')) then
    return 'a delay is a number of milliseconds'
  end
  if window ~= '' and (#window > 13 or not string.find(window, '^%d+$')) then
    return 'a window is a number of milliseconds'
  end
  if ARGV[at + 12] ~= '' and not string.find(ARGV[at + 12], '^%d+ %d+ %d+$') then
    return 'a back-off is two numbers of milliseconds and a factor'
  end
end

-- Adds one task, whose thirteen fields begin at ARGV[at]. Answers what became of it.
local payloads = {}
local function enqueue(at)
  local id, kind, payload, media, max, level, delay, unique, window, serial, hold, trace, backoff =
    ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4], ARGV[at + 5], ARGV[at + 6],
    ARGV[at + 7], ARGV[at + 8], ARGV[at + 9], ARGV[at + 10], ARGV[at + 11], ARGV[at + 12]
  if max == '' then max = '5' end
  if level == '' then level = '1' end
  if delay == '' then delay = '0' end
  if call('EXISTS', RECORD .. id) == 1 then return 'E' end
  if unique ~= '' then
    local taken = take_unique(unique, id)
    if taken ~= true then return 'D' .. taken end
  end
  local r = { id = id, y = kind, p = level }
  local fields = { 'y', kind, 'c', NOW }
  local function add(field, value)
    fields[#fields + 1] = field
    fields[#fields + 1] = value
  end
  if serial ~= '' then r.q = serial end
  local to
  if delay ~= '0' then
    to = 'w'
    local due = now + tonumber(delay)
    schedule('scheduled', r, due)
    add('n', text(due))
  else
    to = join_serial(r)
    if to == 'q' then line_up(r) else call('ZADD', P .. 'blocked', NOW, id) end
  end
  if to ~= 'q' then add('s', to) end
  if max ~= '5' then add('m', max) end
  if level ~= '1' then add('p', level) end
  if serial ~= '' then add('q', serial) end
  if hold ~= '' then add('h', hold) end
  if unique ~= '' then add('i', unique) end
  if window ~= '' then
    add('w', window)
    add('v', text(now + tonumber(window)))
  end
  if trace ~= '' then add('T', trace) end
  if media ~= '' then add('C', media) end
  if backoff ~= '' then add('b', backoff) end
  call('HSET', RECORD .. id, unpack(fields))
  payloads[#payloads + 1] = id
  payloads[#payloads + 1] = payload
  bump(to, kind, 1)
  total('enqueued', 1)
  if listening then tell(id, kind, '', to, 0) end
  return 'N' .. to
end

local function flush_payloads()
  if #payloads > 0 then call('HSET', P .. 'payload', unpack(payloads)) end
end

-- A claim: "id token type attempts runs maximum created", the payload, and where there is one of them the media type, the
-- trace context and the back-off. Each value of a reply costs the server and the worker time, so the short ones are one text.
local function claim_of(id, token, kind, attempts, runs, maximum, created, payload, media, trace, backoff)
  local head = id .. ' ' .. token .. ' ' .. kind .. ' ' .. attempts .. ' ' .. runs .. ' ' .. maximum .. ' ' .. created
  if media or trace or backoff then return { head, payload or '', media or '', trace or '', backoff or '' } end
  return { head, payload or '' }
end

-- What run:<owner> holds of a task: its token, a mark, its type. The mark is '!' if its record has to be read when it
-- ends: it has a key, a step, progress, a waiter or a cancel. Without, a success does not need the record.
local function held_as(r)
  local is_plain = not (r.q or r.i or r.W or r.S or r.P or r.x)
  return r.k .. (is_plain and ' ' or '!') .. r.y
end

-- Sets a field of a record that makes it one to be read when it ends.
local function mark(r, field)
  if r[field] then return end
  r[field] = '1'
  call('HSET', RECORD .. r.id, field, '1')
  if r.s == 'r' then call('HSET', P .. 'run:' .. r.o, r.id, held_as(r)) end
end

-- The name and the life of an owner: name~life, or @cluster/name~life/part of a node, whose name has the cluster before it.
local function name_and_life(owner)
  return string.match(owner, '^(.*)~([^/~]*)')
end

-- Whether a life was released, or all of a node's, or lives before a later one of its name were.
local function is_released(owner)
  if call('ZSCORE', P .. 'released', owner) then return true end
  local node = string.match(owner, '^@.*/')
  if node and call('ZSCORE', P .. 'released', node) then return true end
  local name, life = name_and_life(owner)
  local first = name and call('HGET', P .. 'before', name)
  return first and life < first or false
end

local function released_error(owner)
  return redis.error_reply('RELEASED the worker ' .. owner .. ' was declared gone')
end

-- What is known of a task: id, fields of the record, payload, error, result, progress; false if there is none.
local function record(id)
  local flat = call('HGETALL', RECORD .. id)
  if #flat == 0 then return false end
  local function part(hash) return call('HGET', P .. hash, id) end
  return { id, flat, part('payload') or '', part('error'), part('result'), part('progress') }
end

-- Cancels a task, or asks its worker to. Answers what became of it. The caller flushes.
local function cancel(id)
  local r = load(id)
  if not r then return 'U' end
  if r.s == 's' or r.s == 'd' or r.s == 'c' then return 'D' .. r.s end
  if r.s == 'r' then
    mark(r, 'x')
    local key = P .. 'ctl:' .. r.o
    call('RPUSH', key, 'c' .. r.id)
    call('EXPIRE', key, 60)
    return 'R'
  end
  if r.s == 'w' then call('ZREM', P .. 'scheduled', r.id) end
  if r.s == 'e' then call('ZREM', P .. 'retry', r.id) end
  if r.s == 'b' then call('ZREM', P .. 'blocked', r.id) end
  finish(r, 'c')
  return 'C'
end
