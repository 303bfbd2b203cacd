-- Purpose: take a seat that no window counts. Needs seat.lua before it.
-- Guarantee: atomic over all replicas.
-- KEYS[1]: svc:rounds:<caller>
-- ARGV[1]: id of the seat   ARGV[2]: most seats   ARGV[3]: life of a seat in ms
-- Returns: how many seats the caller holds with the one that was taken, else 0.
return take_seat(KEYS[1], ARGV[1], ARGV[2], ARGV[3])
