-- Purpose: record tool calls, or find them again.
-- Guarantee: atomic; all are recorded, or none when one of them is refused. Execution and call id identify a call, which is
--   recorded once; nothing is recorded for a wrong token or an undeclared tool; the first undeclared tool is remembered.
-- ARGV[3]: hash of the callback token (hashes are compared: where two differ tells nothing about the token)
-- ARGV[4]: most calls of an exchange   ARGV[5]: most bytes of their texts together
-- ARGV[6..]: for each call its id, the name of its tool as JSON, its text; no id twice
-- Returns: {'unopened'} without an exchange, {'refused'}, {'undeclared'}, {'full'}, {'large'}, {'other', id, text of the recorded call, id, …}; or how the
--   first call stands: {'answered', text of the result, new}, {'waiting', ms left, new}; `new`: how many calls were new
local token = redis.call('HGET', EXCHANGE, 'token')
if not token then
  return { 'unopened' }
end
if token ~= ARGV[3] then
  return { 'refused' }
end
local fresh, other = {}, { 'other' }
local bytes = tonumber(redis.call('HGET', EXCHANGE, 'bytes') or 0)
for index = 6, #ARGV, 3 do
  local id, name, text = ARGV[index], ARGV[index + 1], ARGV[index + 2]
  if redis.call('HEXISTS', EXCHANGE, 'tool:' .. name) == 0 then
    redis.call('HSETNX', EXCHANGE, 'unregistered', name)
    changed({ EXECUTION })
    return { 'undeclared' }
  end
  local recorded = redis.call('HGET', CALLS, id)
  if not recorded then
    fresh[#fresh + 1] = index
    bytes = bytes + #text
  else
    recorded = string.sub(recorded, string.find(recorded, ' ', 1, true) + 1)
    if recorded ~= text then
      other[#other + 1] = id
      other[#other + 1] = recorded
    end
  end
end
if #other > 1 then
  return other
end
if #fresh > 0 then
  if redis.call('HLEN', CALLS) + #fresh > tonumber(ARGV[4]) then
    return { 'full' }
  end
  if bytes > tonumber(ARGV[5]) then
    return { 'large' }
  end
  local now = now_ms()
  redis.call('HSET', EXCHANGE, 'bytes', bytes)
  for _, index in ipairs(fresh) do
    redis.call('HSET', CALLS, ARGV[index], string.format('%d %s', now, ARGV[index + 2]))
  end
  renew()
  changed({ EXECUTION })
end
local result = redis.call('HGET', RESULTS, ARGV[6])
if result then
  return { 'answered', result, #fresh }
end
return { 'waiting', left_ms(), #fresh }
