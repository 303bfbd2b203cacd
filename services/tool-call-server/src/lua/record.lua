-- Purpose: record tool calls, or find them again.
-- Guarantee: atomic; all are recorded, or none when one of them is refused. Execution and call id identify a call, which is
--   recorded once; nothing is recorded for a wrong token or an undeclared tool; the first undeclared tool is remembered.
-- ARGV[3]: hash of the callback token (comparing hashes: the place where two differ reveals nothing about the token)
-- ARGV[4]: most calls of an exchange   ARGV[5]: most bytes of their texts together
-- ARGV[6..]: for each call its id, the name of its tool as JSON, its text, a digest of what it asks for; no id twice. Calls of one id with
--   equal digests are the same.
-- Returns: {'unopened'} without an exchange, {'refused'}, {'undeclared'}, {'full'}, {'large'}, {'other'}: an id belongs to another call; or the
--   state of the first call: {'answered', text of the result, new}, {'waiting', ms left, new}; `new`: how many calls were new
local token = redis.call('HGET', EXCHANGE, 'token')
if not token then
  return { 'unopened' }
end
if token ~= ARGV[3] then
  return { 'refused' }
end
local fresh, is_other = {}, false
local bytes = tonumber(redis.call('HGET', EXCHANGE, 'bytes') or 0)
for index = 6, #ARGV, 4 do
  local id, name, text, digest = unpack(ARGV, index, index + 3)
  if redis.call('HEXISTS', EXCHANGE, 'tool:' .. name) == 0 then
    redis.call('HSETNX', EXCHANGE, 'unregistered', name)
    changed({ EXECUTION })
    return { 'undeclared' }
  end
  if redis.call('HEXISTS', CALLS, id) == 0 then
    fresh[#fresh + 1] = index
    bytes = bytes + #text
  elseif redis.call('HGET', EXCHANGE, 'digest:' .. id) ~= digest then
    is_other = true
  end
end
if is_other then
  return { 'other' }
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
    redis.call('HSET', EXCHANGE, 'digest:' .. ARGV[index], ARGV[index + 3])
  end
  renew()
  changed({ EXECUTION })
end
local result = redis.call('HGET', RESULTS, ARGV[6])
if result then
  return { 'answered', result, #fresh }
end
return { 'waiting', left_ms(), #fresh }
