-- browse: tasks by state, through the queue's indexes, in steps that a caller repeats with the cursor of the last one.
-- ARGV: now operation arguments. The state of a task in an index is what its record says: ids of cancelled tasks stay in
-- their lines. A step ends when it has found enough, has looked at enough ids, has done its share of work, or has read
-- 1 MiB; then it answers a cursor, which is empty only at the end.
local operation = ARGV[2]
if operation == 'forget' or operation == 'cancel' then
  if is_draining then return format_error() end
  begin()
  beat(true)
end

-- What a step may do, in units of about half a microsecond: an id is one, to look at its record SEEN more, at its payload
-- and error TEXT more, to reply with all of it or to forget it WHOLE more.
local WORK, SEEN, TEXT, WHOLE = 5000, 5, 10, 40
-- Ids that are read from an index at once, and the bytes that end a step.
local CHUNK, BYTES = 100, 1048576
-- Ids of a line that one step compares with a cursor's id which is not where it was, about 2 ms, and how many are read at once.
local FIND, FIND_CHUNK = 10000, 500
-- The index of each state that is one key, and the sorted sets among them.
local LISTS = { s = 'succeeded', c = 'cancelled' }
local SETS = { w = 'scheduled', e = 'retry', b = 'blocked', d = 'dead' }

local newest, limit, look, states, cursor, kind, first, last, words, whole
local looked, work, bytes, found, at = 0, 0, 0, {}, nil
-- Of a walk that forgets: the places in the list of what was found, and the place and id of the last that was not.
local places, kept_place, kept_id = {}, nil, nil

local function is_over()
  return #found >= limit or looked >= look or work >= WORK or bytes >= BYTES
end

-- Whether a task of the state belongs to the listing.
local function admits(state, id)
  looked, work = looked + 1, work + 1
  if first ~= '' and (id < first or id > last) then return false end
  work = work + SEEN
  local seen = call('HMGET', RECORD .. id, 's', 'y')
  local now_in = seen[1]
  if not now_in or now_in == '' then now_in = 'q' end
  if now_in ~= state or not seen[2] or (kind ~= '' and kind ~= seen[2]) then return false end
  if words == '' then return true end
  work = work + TEXT
  local payload, error = call('HGET', P .. 'payload', id), call('HGET', P .. 'error', id)
  bytes = bytes + (payload and #payload or 0) + (error and #error or 0)
  return (payload and string.find(payload, words, 1, true) or error and string.find(error, words, 1, true)) and true
end

local function take(id)
  if not whole then
    found[#found + 1] = id
    return
  end
  work = work + WHOLE
  local shown = record(id)
  if not shown then return end
  found[#found + 1] = shown
  for n = 3, 5 do bytes = bytes + (shown[n] and #shown[n] or 0) end
end

-- Looks at ids, one after the other; true if the step is over, with the last one in `at`. Ids of a list are in places from
-- `low` on, where they are looked at from its head.
local function visit(state, ids, mark, low)
  for n, id in ipairs(ids) do
    if admits(state, id) then
      take(id)
      if low then places[#found] = low + n - 1 end
    elseif low then
      kept_place, kept_id = low + n - 1, id
    end
    if is_over() then
      at = state .. mark(n, id)
      return true
    end
  end
end

local function reversed(list)
  local length = #list
  for n = 1, math.floor(length / 2) do list[n], list[length + 1 - n] = list[length + 1 - n], list[n] end
  return list
end

-- Sorted sets: by time, then id. The cursor is "score id".
local function rank_of(key, score, id)
  local low = call('ZCOUNT', key, '-inf', '(' .. score)
  local high = low + call('ZCOUNT', key, score, score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if call('ZRANGE', key, middle, middle)[1] < id then low = middle + 1 else high = middle end
  end
  return low, call('ZRANGE', key, low, low)[1] == id
end

local function walk_set(state, rest)
  local key = P .. SETS[state]
  local from, length = nil, call('ZCARD', key)
  if rest == '' then
    from = newest and length - 1 or 0
  else
    local score, id = string.match(rest, '^(%S+) (%S+)$')
    if not tonumber(score) then return nil end
    local rank, is_there = rank_of(key, score, id)
    from = newest and rank - 1 or (is_there and rank + 1 or rank)
  end
  while from >= 0 and from < length do
    local pairs_of
    if newest then
      pairs_of = call('ZRANGE', key, math.max(from - CHUNK + 1, 0), from, 'WITHSCORES')
    else
      pairs_of = call('ZRANGE', key, from, from + CHUNK - 1, 'WITHSCORES')
    end
    local ids, scores = {}, {}
    for n = 1, #pairs_of, 2 do
      ids[#ids + 1], scores[#scores + 1] = pairs_of[n], pairs_of[n + 1]
    end
    if newest then ids, scores = reversed(ids), reversed(scores) end
    if visit(state, ids, function(n, id) return scores[n] .. ' ' .. id end) then return true end
    from = from + (newest and -CHUNK or CHUNK)
  end
  return false
end

-- The place after one, in the order of the walk.
local function after(place) return newest and place - 1 or place + 1 end

-- Walks over a list from after the id that was last looked at. `search` answers where that is, or nothing if the step is
-- over before it is found. The walk's cursor is "from_head from_tail more id".
local function walk_list(state, key, rest, search, more)
  local length = call('LLEN', key)
  local from = newest and length - 1 or 0
  if rest ~= '' then
    local head, tail, word, id = string.match(rest, '^(%d+) (%d+) (%S+) (%S+)$')
    if not head then return nil end
    from = search(key, length, { head = tonumber(head), tail = tonumber(tail), word = word, id = id })
    if not from then return true end
  end
  while from >= 0 and from < length do
    local low, high = from, math.min(from + CHUNK, length) - 1
    if newest then low, high = math.max(from - CHUNK + 1, 0), from end
    local ids = call('LRANGE', key, low, high)
    if newest then ids = reversed(ids) end
    local function mark(n, id)
      local index = newest and high - n + 1 or low + n - 1
      return more(text(index) .. ' ' .. text(length - 1 - index), id)
    end
    if visit(state, ids, mark, not newest and low) then return true end
    from = newest and low - 1 or high + 1
  end
  return false
end

-- When a task of a list of done tasks ended, by its place.
local function ended(key, index)
  local id = call('LINDEX', key, index)
  return id and number(call('HGET', RECORD .. id, 'u'), 0) or 0
end

-- The first place whose task ended at the time or later, or after it.
local function ended_from(key, length, time, after)
  local low, high = 0, length
  while low < high do
    local middle = math.floor((low + high) / 2)
    local is_before = ended(key, middle)
    if after then is_before = is_before <= time else is_before = is_before < time end
    if is_before then low = middle + 1 else high = middle end
  end
  return low
end

-- Lists of done tasks: in the order of their ends. Where the id is gone, the time of its end says where it was.
local function walk_done(state, rest)
  local function search(key, length, last)
    local tail = length - 1 - last.tail
    if call('LINDEX', key, last.head) == last.id then return after(last.head) end
    if tail >= 0 and call('LINDEX', key, tail) == last.id then return after(tail) end
    local ended_at = number(last.word, 0)
    local start = ended_from(key, length, ended_at)
    for n, other in ipairs(call('LRANGE', key, start, start + 10 * CHUNK - 1)) do
      if other == last.id then return after(start + n - 1) end
    end
    return newest and ended_from(key, length, ended_at, true) - 1 or start
  end
  local function more(places, id)
    local time = call('HGET', RECORD .. id, 'u')
    return places .. ' ' .. (time and time ~= '' and time or '0') .. ' ' .. id
  end
  return walk_list(state, P .. LISTS[state], rest, search, more)
end

-- How many tasks of the type, or of all, are in each state, and the types of those in one.
local totals, queued = {}, {}
local function count()
  local flat = call('HGETALL', P .. 'counts')
  for n = 1, #flat, 2 do
    local state, of, number_of = string.sub(flat[n], 1, 1), string.sub(flat[n], 3), tonumber(flat[n + 1])
    if number_of > 0 and (kind == '' or kind == of) then
      totals[state] = (totals[state] or 0) + number_of
      if state == 'q' then queued[#queued + 1] = of end
    end
  end
  table.sort(queued)
end

-- How many times a task was claimed.
local function runs(id)
  local seen = call('HMGET', RECORD .. id, 'r', 'a')
  return text(number(seen[1], number(seen[2], 0)))
end

-- Lines: by priority, then type, then place. The cursor is "priority from_head from_tail type runs id".
--
-- An id joins a line at its tail, or at its head if it is given back, and leaves it at its head. So a task that was claimed
-- since it was looked at is gone from its place, wherever it is now, and so are all that were before it. One that was not is
-- at its distance from the tail or farther away, by what joined there. Where a step does not find it, the cursor gets the
-- distance at which the next step goes on.
local function walk_lines(state, rest)
  local level, places, of, ran, id = string.match(rest, '^(%d) (%d+ %d+) (%S+) (%d+) (%S+)$')
  if rest ~= '' and not level then return nil end
  for priority = tonumber(level or 0), 3 do
    for _, name in ipairs(queued) do
      local is_last = level and priority == tonumber(level) and name == of
      if not level or is_last or priority > tonumber(level) or name > of then
        work = work + SEEN
        local function more(places, id) return priority .. ' ' .. places .. ' ' .. name .. ' ' .. runs(id) .. ' ' .. id end
        local function search(key, length, last)
          local gone = newest and -1 or 0
          if runs(last.id) ~= last.word then return gone end
          if call('LINDEX', key, last.head) == last.id then return after(last.head) end
          local high, compared = length - 1 - last.tail, 0
          while high >= 0 and compared < FIND do
            local low = math.max(high - FIND_CHUNK + 1, 0)
            local ids = call('LRANGE', key, low, high)
            for n = #ids, 1, -1 do
              if ids[n] == last.id then return after(low + n - 1) end
            end
            compared, high = compared + #ids, low - 1
            work = work + #ids / 4
          end
          if high < 0 then return gone end
          at = state .. more(text(last.head) .. ' ' .. text(length - 1 - high), last.id)
        end
        local key = P .. 'ready:' .. priority .. ':' .. name
        local from = is_last and places .. ' ' .. ran .. ' ' .. id or ''
        if walk_list(state, key, from, search, more) then return true end
      end
    end
  end
  return false
end

-- The first of an owner's ids in the order of the walk, after one; all ids are looked at, few are sorted.
local function next_ids(key, after)
  local picked = {}
  local function is_before(a, b) if newest then return a > b else return a < b end end
  for _, id in ipairs(call('HKEYS', key)) do
    if (not after or is_before(after, id)) and (#picked < CHUNK or is_before(id, picked[#picked])) then
      local low, high = 1, #picked + 1
      while low < high do
        local middle = math.floor((low + high) / 2)
        if is_before(picked[middle], id) then low = middle + 1 else high = middle end
      end
      table.insert(picked, low, id)
      if #picked > CHUNK then picked[#picked] = nil end
    end
  end
  return picked
end

-- What runs: by owner, then id. The cursor is "owner id".
local function walk_running(state, rest)
  local of, after = string.match(rest, '^(%S+) (%S+)$')
  if rest ~= '' and not of then return nil end
  local owners = call('ZRANGE', P .. 'owners', '0', '-1')
  table.sort(owners)
  for _, owner in ipairs(owners) do
    if not of or owner >= of then
      local id = owner == of and after or nil
      repeat
        local ids = next_ids(P .. 'run:' .. owner, id)
        if visit(state, ids, function(_, id) return owner .. ' ' .. id end) then return true end
        id = ids[#ids]
      until #ids < CHUNK
    end
  end
  return false
end

local function walk(state, rest)
  if not totals[state] then return false end
  if SETS[state] then return walk_set(state, rest) end
  if LISTS[state] then return walk_done(state, rest) end
  if state == 'q' then return walk_lines(state, rest) end
  return walk_running(state, rest)
end

-- Walks over the states from the cursor on, and calls `leave` after each. The next cursor; an error if it is none.
local function go(leave)
  count()
  local state, is_found = string.sub(cursor, 1, 1), cursor == ''
  for n = 1, #states do
    local letter = string.sub(states, n, n)
    if is_found or letter == state then
      local rest = is_found and '' or string.sub(cursor, 2)
      is_found = true
      local is_over = walk(letter, rest)
      if is_over == nil then break end
      if leave then leave(letter) end
      if is_over then return at end
      if n == #states then return '' end
    end
  end
  return redis.error_reply('CURSOR it is none of this listing')
end

local function filter(from)
  states, cursor, kind, first, last, words =
    ARGV[from], ARGV[from + 1], ARGV[from + 2], ARGV[from + 3], ARGV[from + 4], ARGV[from + 5]
end

local operations = {}

-- order limit look whole states cursor type first last text: the next cursor, how many ids were looked at, and what
-- `status` of admin.lua replies of each task, or ids. The order is 'o' (oldest first) or 'n'.
function operations.list()
  newest, limit, look, whole = ARGV[3] == 'n', tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6] == '1'
  filter(7)
  local next = go()
  if type(next) == 'table' then return next end
  return { next, looked, found }
end

-- limit look states cursor type first last text: the next cursor, how many ids were looked at, how many tasks were
-- forgotten. Places in a list become '-', which is no id, and one command takes them all out.
function operations.forget()
  limit, look = tonumber(ARGV[3]), tonumber(ARGV[4])
  filter(5)
  if string.find(states, '[^sdc]') then return redis.error_reply('ERR only done tasks can be forgotten') end
  local forgotten, kept_before = 0, 0
  local function leave(state)
    local key = P .. (LISTS[state] or SETS[state])
    for n = forgotten + 1, #found do
      local r = load(found[n])
      if r then forget(r) end
      if LISTS[state] then
        call('LSET', key, places[n], '-')
        if kept_place and places[n] < kept_place then kept_before = kept_before + 1 end
      else
        call('ZREM', key, found[n])
      end
    end
    local taken = #found - forgotten
    if LISTS[state] and taken > 0 then
      local length = call('LLEN', key)
      local from_tail = places[forgotten + 1] > length / 2
      call('LREM', key, from_tail and -taken or taken, '-')
      -- The cursor names the last id that is still there.
      if kept_id then
        local place = kept_place - kept_before
        at = state .. text(place) .. ' ' .. text(length - taken - 1 - place) .. ' ' ..
          text(number(call('HGET', RECORD .. kept_id, 'u'), 0)) .. ' ' .. kept_id
      elseif string.sub(cursor, 1, 1) == state then
        at = cursor
      else
        at = state
      end
    end
    forgotten, kept_before, kept_place, kept_id = #found, 0, nil, nil
  end
  local next = go(leave)
  if type(next) == 'table' then return next end
  flush()
  return { next, looked, forgotten }
end

-- id*: what `cancel` replies, for each
function operations.cancel()
  local replies = {}
  for n = 3, #ARGV do replies[n - 2] = cancel(ARGV[n]) end
  flush()
  return replies
end

-- name: owners that run tasks, by name after this one: owner, end of its lease, its last renewal, how many tasks
function operations.owners()
  local ends, owners, replies = {}, {}, {}
  local flat = call('ZRANGE', P .. 'owners', '0', '-1', 'WITHSCORES')
  for n = 1, #flat, 2 do
    if flat[n] > ARGV[3] then
      owners[#owners + 1] = flat[n]
      ends[flat[n]] = flat[n + 1]
    end
  end
  table.sort(owners)
  for n = 1, math.min(#owners, CHUNK) do
    local owner = owners[n]
    local renewed = times_of(call('HGET', P .. 'seen', owner))
    replies[n] = { owner, ends[owner], renewed and text(renewed) or ends[owner],
      text(call('HLEN', P .. 'run:' .. owner)) }
  end
  return replies
end

return operations[operation]()
