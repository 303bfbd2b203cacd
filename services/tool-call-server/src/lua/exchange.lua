-- Purpose: the shared part of the tool call server's scripts, put in front of each of them.
-- Keys of one execution: its exchange (hash; in it `digest:<call id>`: what the call asks for), its calls (hash: call id to time, space,
--   text), its results (hash: call id to text); and the index of all exchanges (sorted set: execution id by the time in ms at which it
--   expires).
-- KEYS[1..4]: svc:tool:<execution>:session, :calls, :results; svc:tool:sessions
-- ARGV[1]: execution id   ARGV[2]: life of an exchange in ms, restarted at each change
-- Times are Redis's, so all servers agree on them.
local EXCHANGE, CALLS, RESULTS, INDEX = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local EXECUTION, LIFE = ARGV[1], tonumber(ARGV[2])

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Restarts the life of the exchange and the waiting time of its calls. Nobody closes an exchange that its caller abandons: expired ones
-- leave the index here, and the index itself expires with the last exchange.
local function renew()
  local now = now_ms()
  redis.call('HSET', EXCHANGE, 'renewed', now)
  redis.call('ZREMRANGEBYSCORE', INDEX, '-inf', now)
  redis.call('ZADD', INDEX, now + LIFE, EXECUTION)
  for _, key in ipairs({ EXCHANGE, CALLS, RESULTS }) do
    redis.call('PEXPIRE', key, LIFE)
  end
  redis.call('PEXPIREAT', INDEX, redis.call('ZRANGE', INDEX, -1, -1, 'WITHSCORES')[2])
  return now
end

-- How long a call may still wait for its result, in ms; 0 or less when its time is over.
local function left_ms()
  local renewed, timeout = unpack(redis.call('HMGET', EXCHANGE, 'renewed', 'timeout'))
  return renewed + timeout - now_ms()
end

-- Notifies the waiting requests of all servers: the message is a list of topics, separated by spaces.
local function publish(topics)
  redis.call('PUBLISH', 'svc:tool:changes', table.concat(topics, ' '))
end

-- Notifies of a change and counts up the revision, by which a server that missed the message finds the change.
local function changed(topics)
  redis.call('HINCRBY', EXCHANGE, 'rev', 1)
  publish(topics)
end
