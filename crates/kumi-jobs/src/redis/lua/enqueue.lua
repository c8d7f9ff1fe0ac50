-- enqueue: ARGV[2] tasks of twelve fields each.
local replies = {}
for n = 0, tonumber(ARGV[2]) - 1 do replies[n + 1] = enqueue(3 + 12 * n) end
flush_payloads()
flush()
return replies
