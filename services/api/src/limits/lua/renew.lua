-- Purpose: renew the seats that a live process holds for one caller.
-- Guarantee: atomic; each seat lives for its full life from now, even if Redis had lost it.
-- KEYS[1]: svc:seats:<caller> or svc:rounds:<caller>
-- ARGV[1]: life of a seat in ms   ARGV[2..]: ids of the seats
local time = redis.call('TIME')
local expiry = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[1]
for index = 2, #ARGV do
  redis.call('ZADD', KEYS[1], expiry, ARGV[index])
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
