-- enqueue: ARGV[2] tasks of twelve fields each: id type payload media max priority delay unique window serial hold trace
if is_draining then return format_error() end
local replies = {}
for n = 0, tonumber(ARGV[2]) - 1 do
  local wrong = wrong_field(3 + 12 * n)
  if wrong then return redis.error_reply('ERR task ' .. n + 1 .. ': ' .. wrong) end
end
if not version then call('SET', P .. 'version', FORMAT) end
for n = 0, tonumber(ARGV[2]) - 1 do replies[n + 1] = enqueue(3 + 12 * n) end
flush_payloads()
flush()
return replies
