-- Purpose: record a tool call, or find it again.
-- Guarantee: atomic; a call is known by execution and call id and is recorded once; nothing is recorded for a wrong token or
--   an undeclared tool; the first undeclared tool is remembered.
-- ARGV[3]: hash of the callback token (hashes are compared: where two differ tells nothing about the token)
-- ARGV[4]: call id   ARGV[5]: name of the tool, as JSON   ARGV[6]: text of the call
-- ARGV[7]: most calls of a session   ARGV[8]: most bytes of their texts together
-- Returns: {'unopened'} without a session, {'refused'}, {'undeclared'}, {'full'}, {'large'}, {'other', text of the known call}, {'answered', text of the
--   result, new}, {'waiting', ms left, new}; `new` is 1 for a call that was not known, else 0
local token = redis.call('HGET', SESSION, 'token')
if not token then
  return { 'unopened' }
end
if token ~= ARGV[3] then
  return { 'refused' }
end
if redis.call('HEXISTS', SESSION, 'tool:' .. ARGV[5]) == 0 then
  redis.call('HSETNX', SESSION, 'unregistered', ARGV[5])
  changed({ EXECUTION })
  return { 'undeclared' }
end
local known = redis.call('HGET', CALLS, ARGV[4])
local result = redis.call('HGET', RESULTS, ARGV[4])
if known then
  local text = string.sub(known, string.find(known, ' ', 1, true) + 1)
  if text ~= ARGV[6] then
    return { 'other', text }
  end
  if result then
    return { 'answered', result, 0 }
  end
  return { 'waiting', left_ms(), 0 }
end
if redis.call('HLEN', CALLS) >= tonumber(ARGV[7]) then
  return { 'full' }
end
local bytes = tonumber(redis.call('HGET', SESSION, 'bytes') or 0) + #ARGV[6]
if bytes > tonumber(ARGV[8]) then
  return { 'large' }
end
redis.call('HSET', SESSION, 'bytes', bytes)
redis.call('HSET', CALLS, ARGV[4], string.format('%d %s', now_ms(), ARGV[6]))
renew()
changed({ EXECUTION })
if result then
  return { 'answered', result, 1 }
end
return { 'waiting', left_ms(), 1 }
