-- cancel: ARGV: now id
if is_draining then return format_error() end
begin()
beat(true)
local r = load(ARGV[2])
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
finish(r, 'c')
flush()
return 'C'
