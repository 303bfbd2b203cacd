-- Purpose: find a session of a user by its id.
-- Guarantee: changes nothing. Looks at each session of the user; begin.lua limits their number.
-- KEYS[1]: svc:sessions:index:<namespace>   ARGV[1]: sessionstate:<namespace>   ARGV[2]: id of the session
-- Returns: its hint, empty for the default session; nil when there is none.
for _, hint in ipairs(redis.call('ZREVRANGE', KEYS[1], 0, -1)) do
  local key = hint == '' and ARGV[1] or ARGV[1] .. ':' .. hint
  if redis.call('HGET', key, 'id') == ARGV[2] then
    return hint
  end
end
return nil
