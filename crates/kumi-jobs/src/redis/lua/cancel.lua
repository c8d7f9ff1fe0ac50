-- cancel: ARGV: now id
if is_draining then return format_error() end
begin()
beat(true)
local reply = cancel(ARGV[2])
flush()
return reply
