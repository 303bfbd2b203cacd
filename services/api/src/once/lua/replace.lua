-- Purpose: replace or remove an entry that the caller still owns.
-- Guarantee: atomic; an entry with another text is left as it is. One that lapsed, as while the store was away, is made
--   again: nobody else has claimed it.
-- KEYS[1]: the entry of one request
-- ARGV[1]: the text that must be there, if any is   ARGV[2]: the new text; empty removes the entry   ARGV[3]: its life in ms
-- Returns: 0 when the entry is another request's, else 1.
local found = redis.call('GET', KEYS[1])
if found and found ~= ARGV[1] then
  return 0
end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
end
return 1
