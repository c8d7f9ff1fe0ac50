-- enqueue: ARGV[2] tasks of thirteen fields each: id type payload media max priority delay unique
-- window serial hold trace backoff
if is_draining then return format_error() end
local replies = {}
for n = 0, tonumber(ARGV[2]) - 1 do
  local wrong = wrong_field(3 + 13 * n)
  if wrong then return redis.error_reply('ERR task ' .. n + 1 .. ': ' .. wrong) end
end
if not version then call('SET', P .. 'version', FORMAT) end
for n = 0, tonumber(ARGV[2]) - 1 do replies[n + 1] = enqueue(3 + 13 * n) end
if #payloads > 0 then beat(true) end
flush_payloads()
flush()
return replies
