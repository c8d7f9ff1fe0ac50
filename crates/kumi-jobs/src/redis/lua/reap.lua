-- reap: what time brings, for a queue without workers. ARGV: now keep keep_ms keep_dead keep_dead_ms
-- Answers how many tasks moved, and what owners lost.
if is_draining then return format_error() end
begin()
local moved = reap_one() + promote()
trim(tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]))
flush()
return { moved, lost }
