-- Purpose: replace or remove an entry that the caller still owns.
-- Guarantee: atomic; an entry with another text is not changed. An expired entry is created again, because nobody else has
--   claimed it: it may expire while Redis is unreachable.
-- KEYS[1]: the entry of one request
-- ARGV[1]: the expected text, if the entry exists   ARGV[2]: the new text; empty removes the entry   ARGV[3]: its life in ms
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
