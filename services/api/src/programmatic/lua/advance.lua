-- Purpose: move a program's progress on: from one known state to the next, together with its calls and the entry of the
--   request that does it.
-- Guarantee: atomic; nothing but the entry changes unless the progress is exactly what the caller has read. Everything that
--   is kept of the program lives as long as the progress.
-- KEYS[1]: progress   KEYS[2]: calls (list)   KEYS[3]: the program   KEYS[4]: entry of the request; KEYS[1] for none
-- ARGV[1]: the progress that must be there, empty for none   ARGV[2]: the new progress   ARGV[3]: life in ms
-- ARGV[4]: the program, empty to leave it
-- ARGV[5]: text of the entry while its request runs, empty for none   ARGV[6]: its text with the answer, which takes the
--   place of that if it is still there; empty: the entry is taken, and nothing changes when it is another request's
-- ARGV[7]: life of the entry in ms, as it is then
-- ARGV[8]: n, how many calls are answered   ARGV[9..8+2n]: index and outcome of each, a JSON object each
-- ARGV[9+2n..]: calls that are added, a JSON object each
-- Returns: 1 when it was done; 0 when the progress is another one; -1 when a call to be answered is not there; -2 when the
--   entry is another request's. It was taken unless it is that.
local begins = ARGV[5] ~= '' and ARGV[6] == ''
if begins and not redis.call('SET', KEYS[4], ARGV[5], 'PX', ARGV[7], 'NX') then
  -- A command that is sent again after its answer was lost finds its own entry.
  if redis.call('GET', KEYS[4]) ~= ARGV[5] then
    return -2
  end
end
local found = redis.call('GET', KEYS[1]) or ''
if found ~= ARGV[1] then
  return 0
end
local answered = tonumber(ARGV[8])
local calls = {}
for at = 1, answered do
  local call = redis.call('LINDEX', KEYS[2], ARGV[7 + 2 * at])
  if not call then
    return -1
  end
  calls[at] = call
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
if ARGV[4] ~= '' then
  redis.call('SET', KEYS[3], ARGV[4])
end
if ARGV[6] ~= '' and redis.call('GET', KEYS[4]) == ARGV[5] then
  redis.call('SET', KEYS[4], ARGV[6], 'PX', ARGV[7])
end
for at = 1, answered do
  -- The outcome becomes the last member of the call's object.
  local text = string.sub(calls[at], 1, -2) .. ',"outcome":' .. ARGV[8 + 2 * at] .. '}'
  redis.call('LSET', KEYS[2], ARGV[7 + 2 * at], text)
end
for at = 9 + 2 * answered, #ARGV do
  redis.call('RPUSH', KEYS[2], ARGV[at])
end
redis.call('PEXPIRE', KEYS[2], ARGV[3])
redis.call('PEXPIRE', KEYS[3], ARGV[3])
return 1
