//! Lua programs without Redis calls, for the comparison of interpreters. Each returns a number that all interpreters
//! must agree on, and runs for some milliseconds.

/// A program, and whether it needs a library that only the servers have.
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) source: &'static str,
    pub(super) needs_server: bool,
}

pub(super) const PROGRAMS: [Program; 7] = [
    Program {
        name: "calls",
        label: "recursive calls",
        source: "local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end return fib(22)",
        needs_server: false,
    },
    Program {
        name: "numbers",
        label: "arithmetic in loops",
        source: "
local total = 0
for i = 1, 200 do
  local x = i
  for j = 1, 500 do
    x = (x * 31 + j) % 65521
    if x % 2 == 0 then total = total + x else total = total - 1 end
  end
end
return total",
        needs_server: false,
    },
    Program {
        name: "tables",
        label: "arrays, records, sort",
        source: "
local items = {}
local seed = 42
for i = 1, 2000 do
  seed = (seed * 1103 + 12345) % 65536
  items[#items + 1] = {id = i, score = seed, name = 'n' .. i}
end
table.sort(items, function(a, b) if a.score ~= b.score then return a.score < b.score end return a.id < b.id end)
local index, sum = {}, 0
for position, item in ipairs(items) do index[item.name] = position end
for name, position in pairs(index) do sum = sum + position * #name end
return sum",
        needs_server: false,
    },
    Program {
        name: "objects",
        label: "methods and closures",
        source: "
local Account = {}
Account.__index = Account
function Account.new() return setmetatable({balance = 0, log = {}}, Account) end
function Account:add(amount) self.balance = self.balance + amount; self.log[#self.log + 1] = amount end
local function counter() local n = 0 return function() n = n + 1 return n end end
local account, next = Account.new(), counter()
for i = 1, 15000 do account:add(next() % 7) end
return account.balance + #account.log",
        needs_server: false,
    },
    Program {
        name: "strings",
        label: "concatenation, format, sub",
        source: "
local parts = {}
for i = 1, 3000 do
  parts[#parts + 1] = string.format('%05d:%s', i, ('ab'):rep(i % 5)) .. '/' .. tostring(i * 3)
end
local text, sum = table.concat(parts, ','), 0
for i = 1, #text, 7 do sum = sum + text:byte(i) + #text:sub(i, i + 3) end
return sum",
        needs_server: false,
    },
    Program {
        name: "patterns",
        label: "gmatch, gsub, find",
        source: "
local text = ('user:%d+ alpha=12, beta=345; gamma=6 '):rep(100)
local sum = 0
for key, value in text:gmatch('(%a+)=(%d+)') do sum = sum + #key * tonumber(value) end
local changed, count = text:gsub('%s*(%a+)%s*=', function(word) return word:upper() .. ':' end)
local at, found = 1, 0
while true do
  local first, last = text:find('%d+[,;]?', at)
  if not first then break end
  at, found = last + 1, found + 1
end
return sum + count + found + #changed",
        needs_server: false,
    },
    Program {
        name: "json",
        label: "cjson, there and back",
        source: "
local sum = 0
for i = 1, 150 do
  local text = cjson.encode({id = i, tags = {'a', 'b', 'c'}, nested = {x = i * 2, name = 'item' .. i}})
  local back = cjson.decode(text)
  sum = sum + back.nested.x + #back.tags
end
return sum",
        needs_server: true,
    },
];
