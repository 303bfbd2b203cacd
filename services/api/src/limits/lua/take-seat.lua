-- Purpose: take a seat without counting a request in a window. Needs seat.lua before it.
-- Guarantee: atomic over all replicas.
-- KEYS[1]: svc:rounds:<caller>
-- ARGV[1]: id of the seat   ARGV[2]: most seats   ARGV[3]: life of a seat in ms
-- Returns: the caller's seats including this one, or 0 when none was taken.
return take_seat(KEYS[1], ARGV[1], ARGV[2], ARGV[3])
