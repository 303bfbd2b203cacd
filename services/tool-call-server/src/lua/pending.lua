-- Purpose: list the calls that have no result yet.
-- Guarantee: atomic view of the exchange, whose life is renewed. Nothing is listed while the caller may still wait
--   for more calls.
-- ARGV[3]: 1 to list what there is; 0 to list it only when it is complete
-- ARGV[4..]: the wanted call ids; complete means that all are recorded. None: all calls; complete means that one has no result.
-- Returns: {'gone'}, {'incomplete', revision}, or {'listed', undeclared tool as JSON or '', call id, time and text, call id, …}
if redis.call('EXISTS', EXCHANGE) == 0 then
  return { 'gone' }
end
renew()
local undeclared = redis.call('HGET', EXCHANGE, 'unregistered') or ''
local asked = {}
for index = 4, #ARGV do
  asked[#asked + 1] = ARGV[index]
end
local all = #asked == 0
local open, missing = {}, all
for _, id in ipairs(all and redis.call('HKEYS', CALLS) or asked) do
  if redis.call('HEXISTS', CALLS, id) == 0 then
    missing = true
  elseif redis.call('HEXISTS', RESULTS, id) == 0 then
    open[#open + 1] = id
    missing = missing and not all
  end
end
if missing and undeclared == '' and ARGV[3] == '0' then
  return { 'incomplete', redis.call('HGET', EXCHANGE, 'rev') }
end
local listed = { 'listed', undeclared }
for _, id in ipairs(open) do
  listed[#listed + 1] = id
  listed[#listed + 1] = redis.call('HGET', CALLS, id)
end
return listed
