-- admin: everything else. ARGV: now operation arguments
local operation = ARGV[2]
-- Only what adds a task may fail on a full server. The first write of all else is a DEL, which a full server allows.
local reads = { status = 1, counts = 1, claims = 1, running = 1, schedules = 1, retention = 1, load = 1,
  releases = 1 }
-- What a worker needs to end what it runs.
local ends = { heartbeat = 1, progress = 1, step = 1, watch = 1 }
if is_draining and not reads[operation] and not ends[operation] then return format_error() end
if not reads[operation] and operation ~= 'fire' then begin() end

local function held(id, token)
  local r = load(id)
  if r and r.s == 'r' and r.k == token then return r end
end

-- Elements of lists over which one purge walks; about 3 ms.
local PURGE_WALK = 50000
-- Lists of done tasks by state.
local LISTS = { s = 'succeeded', c = 'cancelled' }

local operations = {}

-- owner lease: how many tasks the lease covers
function operations.heartbeat()
  local owner = ARGV[3]
  if is_released(owner) then return released_error(owner) end
  beat(true)
  local holds = call('HLEN', P .. 'run:' .. owner)
  if holds == 0 then return 0 end
  call('ZADD', P .. 'owners', now + tonumber(ARGV[4]), owner)
  call('HSET', P .. 'seen', owner, NOW)
  return holds
end

-- owner cursor: the next cursor, and ids in no order, perhaps some twice
function operations.running()
  if is_released(ARGV[3]) then return released_error(ARGV[3]) end
  local page, ids = call('HSCAN', P .. 'run:' .. ARGV[3], ARGV[4], 'COUNT', 2 * TURN), {}
  for n = 1, #page[2], 2 do ids[#ids + 1] = page[2][n] end
  return { page[1], ids }
end

-- owner id*: what claim_of in lib.lua makes; a claim that is to be cancelled has the word x at the end of its first text
function operations.claims()
  local claims = {}
  for n = 4, #ARGV do
    local r = load(ARGV[n])
    if r and r.s == 'r' and r.o == ARGV[3] and r.k then
      local claim = claim_of(r.id, r.k, r.y, text(number(r.a, 0)), text(runs_of(r)), r.m or '5', r.c or '0',
        call('HGET', P .. 'payload', r.id), r.C, r.T, r.b)
      if r.x then claim[1] = claim[1] .. ' x' end
      claims[#claims + 1] = claim
    end
  end
  return claims
end

function operations.progress()
  local r = held(ARGV[3], ARGV[4])
  if not r then return 0 end
  call('HSET', P .. 'progress', r.id, ARGV[5])
  mark(r, 'P')
  return 1
end

-- id token name value limit limit_bytes
function operations.step()
  local r = held(ARGV[3], ARGV[4])
  if not r then return 0 end
  local key, name, value = P .. 'steps:' .. r.id, ARGV[5], ARGV[6]
  local before = 0
  if call('HEXISTS', key, name) == 1 then
    before = #name + call('HSTRLEN', key, name)
  elseif call('HLEN', key) >= tonumber(ARGV[7]) then
    return -1
  end
  local size = number(r.B, 0) - before + #name + #value
  if size > tonumber(ARGV[8]) then return { size } end
  call('HSET', key, name, value)
  call('HSET', RECORD .. r.id, 'B', text(size))
  mark(r, 'S')
  return 1
end

function operations.status() return record(ARGV[3]) end

function operations.counts()
  local since = now - 60000
  return { call('HGETALL', P .. 'counts'), call('ZRANGEBYSCORE', P .. 'served', '(' .. string.format('%d', since), '+inf'),
    call('EXISTS', P .. 'paused') }
end

function operations.requeue()
  local replies = {}
  for n = 3, #ARGV do
    local r, reply = load(ARGV[n]), nil
    if not r then
      reply = 'U'
    elseif r.s ~= 'd' then
      reply = 'N' .. r.s
    else
      local taken = true
      if r.i then taken = take_unique(r.i, r.id) end
      if taken ~= true then
        reply = 'T' .. taken
      else
        call('ZREM', P .. 'dead', r.id)
        call('HSET', RECORD .. r.id, 'a', '0', 'g', '0', 'r', text(runs_of(r)))
        r.a = 0
        admit(r)
        reply = 'A' .. r.s
      end
    end
    replies[n - 2] = reply
  end
  flush()
  return replies
end

-- id*: how many tasks were forgotten, and how many ids were looked at. To remove an id from a list is a walk over the
-- list; the script ends once its walks are long enough.
function operations.purge()
  local count, looked, walk, purged = 0, 0, PURGE_WALK, {}
  while walk > 0 and looked < #ARGV - 2 do
    looked = looked + 1
    local id = ARGV[looked + 2]
    local r = not purged[id] and load(id)
    local list = r and LISTS[r.s]
    if list then
      walk = walk - call('LLEN', P .. list)
      call('LREM', P .. list, 1, id)
    end
    if list or (r and r.s == 'd') then
      if not list then call('ZREM', P .. 'dead', id) end
      forget(r)
      purged[id] = true
      count = count + 1
    end
  end
  flush()
  return { count, looked }
end

function operations.pause()
  if ARGV[3] == '1' then
    call('SET', P .. 'paused', '1')
    return 1
  end
  call('DEL', P .. 'paused')
  paused = false
  for _, field in ipairs(call('HKEYS', P .. 'counts')) do
    if string.sub(field, 1, 2) == 'q:' then wakes[string.sub(field, 3)] = 'ready' end
  end
  flush()
  return 1
end

function operations.limit()
  if ARGV[4] == '' then
    call('HDEL', P .. 'limits', ARGV[3])
  else
    call('HSET', P .. 'limits', ARGV[3], ARGV[4])
  end
  wakes[ARGV[3]] = 'ready'
  flush()
  return 1
end

function operations.retention() return { keep, keep_ms, keep_dead, keep_dead_ms } end

-- four numbers, as in lib.lua: what is kept from now on
function operations.keep()
  for n = 3, 6 do
    if not string.find(ARGV[n] or '', '^%d+$') or #ARGV[n] > 13 then
      return redis.error_reply('ERR what is kept is four numbers')
    end
  end
  call('SET', P .. 'keep', table.concat(ARGV, ' ', 3, 6))
  return 1
end

-- whether membership may release owners
function operations.releases() return call('GET', P .. 'releases') == 'off' and 0 or 1 end

-- 1 or 0: switches releases by membership on or off
function operations.set_releases()
  if ARGV[3] == '0' then
    call('SET', P .. 'releases', 'off')
  else
    call('DEL', P .. 'releases')
  end
  return 1
end

-- the clock, totals by name, and since when the task has been ready that has waited longest among the first LOOK of each
-- line, or -1; of LOOKS lines and tasks together at most, about 1 ms
local LOOK, LOOKS = 10, 400
function operations.load()
  local since, looks = -1, LOOKS
  local function look(line)
    looks = looks - 1
    for _, id in ipairs(call('LRANGE', line, '0', text(math.min(LOOK, looks) - 1))) do
      looks = looks - 1
      local r = call('HMGET', RECORD .. id, 'y', 's', 'u', 'c')
      local is_ready = r[1] and r[1] ~= '' and (not r[2] or r[2] == '' or r[2] == 'q')
      local at = is_ready and (tonumber(r[3] or '') or tonumber(r[4] or ''))
      if at and (since == -1 or at < since) then since = at end
    end
  end
  local flat = call('HGETALL', P .. 'counts')
  for n = 1, #flat, 2 do
    local kind = string.match(flat[n], '^q:(.*)$')
    if kind and tonumber(flat[n + 1]) > 0 then
      for level = 0, 3 do
        if looks > 1 then look(P .. 'ready:' .. DIGITS[level] .. ':' .. kind) end
      end
    end
  end
  return { now, call('HGETALL', P .. 'totals'), since }
end

-- id name: 0 if there is no such task, 1 if it is done, 2 if the name will be told
function operations.watch()
  local r = load(ARGV[3])
  if not r then return 0 end
  if r.s == 's' or r.s == 'd' or r.s == 'c' then return 1 end
  call('SADD', P .. 'waiters:' .. ARGV[3], ARGV[4])
  call('EXPIRE', P .. 'waiters:' .. ARGV[3], 86400)
  mark(r, 'W')
  return 2
end

-- milliseconds: moves are reported for so long. Answers the newest number. Where moves were not reported until now, a
-- number is left out, so that each reader sees a gap there. The first number is the server's time in microseconds: after
-- a loss of all data numbers go on above all earlier ones, and readers see a gap too.
function operations.listen()
  call('SET', P .. 'listening', '1', 'PX', ARGV[3])
  call('EXPIRE', P .. 'events', 3600)
  local newest = tonumber(call('GET', P .. 'events:seq'))
  if listening and newest then return newest end
  if newest then return call('INCR', P .. 'events:seq') end
  local time = call('TIME')
  newest = time[1] * 1000000 + time[2]
  call('SET', P .. 'events:seq', text(newest))
  return newest
end

-- A schedule whose times are the same keeps its last slot.
local function put_schedule(name, times, definition)
  local old = call('HGET', P .. 'cron:times', name)
  call('HSET', P .. 'cron', name, definition)
  call('HSET', P .. 'cron:times', name, times)
  if old ~= times then call('HSET', P .. 'cron:last', name, NOW) end
end

local function remove_schedule(name)
  call('HDEL', P .. 'cron:times', name)
  call('HDEL', P .. 'cron:last', name)
  call('HDEL', P .. 'cron:set', name)
  return call('HDEL', P .. 'cron', name)
end

-- name times definition: the schedule belongs to no set
function operations.schedule()
  put_schedule(ARGV[3], ARGV[4], ARGV[5])
  call('HDEL', P .. 'cron:set', ARGV[3])
  return 1
end

-- set (name times definition)*: the set has these schedules and no others. Answers the names that it had and has no more.
function operations.declare()
  local set, has, removed = ARGV[3], {}, {}
  for n = 4, #ARGV, 3 do
    put_schedule(ARGV[n], ARGV[n + 1], ARGV[n + 2])
    call('HSET', P .. 'cron:set', ARGV[n], set)
    has[ARGV[n]] = true
  end
  local flat = call('HGETALL', P .. 'cron:set')
  for n = 1, #flat, 2 do
    if flat[n + 1] == set and not has[flat[n]] then
      remove_schedule(flat[n])
      removed[#removed + 1] = flat[n]
    end
  end
  table.sort(removed)
  return removed
end

function operations.unschedule() return remove_schedule(ARGV[3]) end

function operations.schedules()
  return { now, call('HGETALL', P .. 'cron'), call('HGETALL', P .. 'cron:last') }
end

-- name last slot and perhaps the thirteen fields of a task
function operations.fire()
  if call('HGET', P .. 'cron:last', ARGV[3]) ~= ARGV[4] then return 0 end
  if ARGV[6] then
    local wrong = wrong_field(6)
    if wrong then return redis.error_reply('ERR the task: ' .. wrong) end
    enqueue(6)
    flush_payloads()
    flush()
  end
  call('HSET', P .. 'cron:last', ARGV[3], ARGV[5])
  return 1
end

return operations[operation]()
