-- Purpose: make one transition of a program (state.ts): replace the record that was read by the next one, and update its calls, the
--   idempotency entry of the request that causes it, and the stored bytes of its principal. Needs stored.lua before it.
-- Guarantee: atomic; nothing changes unless the record is exactly the one that the caller read. All keys of the program live as
--   long as its record, or until the program is over.
-- KEYS[1]: record   KEYS[2]: calls (list)   KEYS[3]: program   KEYS[4]: entry of the request; KEYS[1] for none
-- KEYS[5], KEYS[6]: ids and sizes of what is stored of the principal
-- ARGV[1]: the expected record, empty for none   ARGV[2]: the new record   ARGV[3]: life in ms
-- ARGV[4]: the program; empty leaves it unchanged; '-' when the program is over: it and its calls are removed
-- ARGV[5]: text of the entry with the answer, empty for none. It replaces any entry: the record proves whose answer counts, even if
--   the entry expired or another request claimed it meanwhile   ARGV[6]: life of the entry in ms after the change
-- ARGV[7]: execution id   ARGV[8]: bytes stored for it after the change, empty for a record that names no principal
-- ARGV[9]: the most bytes that the principal may then have stored; 0: no limit
-- ARGV[10]: n, how many calls get their outcome   ARGV[11..10+2n]: for each its index and its outcome, a JSON object
-- ARGV[11+2n..]: calls to add, a JSON object each
-- ARGV[2] is unique to this command: when it is sent again after its reply was lost, it finds its own record and returns 1.
-- Returns: 1 when the transition is made; 0 when the record differs; -1 when the record, or a call that gets its outcome, is lost;
--   -2 when the principal has too much stored.
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
local answered = tonumber(ARGV[10])
local calls = {}
for at = 1, answered do
  local call = redis.call('LINDEX', KEYS[2], ARGV[9 + 2 * at])
  if not call then
    return -1
  end
  calls[at] = call
end
if ARGV[8] ~= '' then
  local others = stored_total(KEYS[5], KEYS[6]) - (redis.call('HGET', KEYS[6], ARGV[7]) or 0)
  if ARGV[9] ~= '0' and others + ARGV[8] > tonumber(ARGV[9]) then
    return -2
  end
  stored_put(KEYS[5], KEYS[6], ARGV[7], ARGV[8], math.max(ARGV[3], ARGV[6]))
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
if ARGV[5] ~= '' then
  redis.call('SET', KEYS[4], ARGV[5], 'PX', ARGV[6])
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
  local text = string.sub(calls[at], 1, -2) .. ',"outcome":' .. ARGV[10 + 2 * at] .. '}'
  redis.call('LSET', KEYS[2], ARGV[9 + 2 * at], text)
end
for at = 11 + 2 * answered, #ARGV do
  redis.call('RPUSH', KEYS[2], ARGV[at])
end
redis.call('PEXPIRE', KEYS[2], ARGV[3])
redis.call('PEXPIRE', KEYS[3], ARGV[3])
return 1
