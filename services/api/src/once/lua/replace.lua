-- Purpose: replace or remove an entry that the caller still owns.
-- Guarantee: atomic; an entry with another text, or none at all, is left as it is.
-- KEYS[1]: the entry of one request
-- ARGV[1]: the text that must be there   ARGV[2]: the new text; empty removes the entry   ARGV[3]: its life in ms
-- Returns: 1 when the entry was the caller's, else 0.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
end
return 1
