-- Purpose: make one transition of a program (state.ts): from the record that was read to the next one, together with its
--   calls and the idempotency entry of the request that causes it.
-- Guarantee: atomic; nothing changes unless the record is exactly the one that the caller read. All keys of the program
--   live as long as the record, or until it is over.
-- KEYS[1]: record   KEYS[2]: calls (list)   KEYS[3]: program   KEYS[4]: entry of the request; KEYS[1] for none
-- ARGV[1]: the record that must be there, empty for none   ARGV[2]: the new record   ARGV[3]: life in ms
-- ARGV[4]: the program, empty to leave it, '-' when it is over: it and its calls are removed
-- ARGV[5]: text of the entry while its request runs, empty for none   ARGV[6]: its text with the answer, which replaces
--   the first if that is still there   ARGV[7]: life of the entry in ms after the change
-- ARGV[8]: n, how many calls get their outcome   ARGV[9..8+2n]: index and outcome of each, a JSON object each
-- ARGV[9+2n..]: calls that are added, a JSON object each
-- ARGV[2] is no other command's: a command that is sent again after its reply was lost finds its own record, and is done.
-- Returns: 1 when it was done; 0 when the record differs; -1 when it is lost, or a call that gets its outcome is.
local found = redis.call('GET', KEYS[1]) or ''
if found == ARGV[2] then
  return 1
end
if found == '' and ARGV[1] ~= '' then
  return -1
end
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
if ARGV[6] ~= '' and redis.call('GET', KEYS[4]) == ARGV[5] then
  redis.call('SET', KEYS[4], ARGV[6], 'PX', ARGV[7])
end
if ARGV[4] == '-' then
  redis.call('DEL', KEYS[2], KEYS[3])
  return 1
end
if ARGV[4] ~= '' then
  redis.call('SET', KEYS[3], ARGV[4])
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
