-- reap: what time brings, for a queue without workers. ARGV: now
-- Answers how many tasks moved, and what owners lost.
if is_draining then return format_error() end
begin()
beat(false)
local moved = reap_one() + promote()
trim()
flush()
return { moved, lost }
