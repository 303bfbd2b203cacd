-- Purpose: count a request in the window of its scope and, for an execution, take a seat. Needs seat.lua before it.
-- Guarantee: atomic over all replicas. A window begins with its first request and ends after its length. Every call counts one
--   request, also when the request is refused. A seat is taken only while the window has room.
-- KEYS[1]: svc:limit:<scope>:<caller>   KEYS[2], when a seat is asked for: svc:seats:<caller>
-- ARGV[1]: requests allowed   ARGV[2]: length of the window in ms
-- ARGV[3]: id of the seat   ARGV[4]: most seats   ARGV[5]: life of a seat in ms   (only with KEYS[2])
-- Returns: the requests counted in this window, ms until it ends, and the caller's seats including this one, or 0 when none was taken.
local count = redis.call('INCR', KEYS[1])
local left = redis.call('PTTL', KEYS[1])
local length = tonumber(ARGV[2])
-- A new window, or one from before a setting made windows shorter.
if left < 0 or left > length then
  redis.call('PEXPIRE', KEYS[1], length)
  left = length
end
if KEYS[2] == nil or count > tonumber(ARGV[1]) then
  return { count, left, 0 }
end
return { count, left, take_seat(KEYS[2], ARGV[3], ARGV[4], ARGV[5]) }
