-- Purpose: change the ledger record of a grant. Nothing else ever changes a record.
-- Guarantee: atomic. Replaces the record only when it still has the revision that the caller changed, and keeps its expiry.
--   Never recreates a missing record. A change that lost twice gets a turn: until it is made, or for TURN_MS, no other change is
--   made. So no change starves while gateways write without a pause.
-- KEYS[1]: svc:egress:grant:<grant id>
-- KEYS[2]: svc:egress:turn:<grant id>, the id of the change that has the turn
-- ARGV[1]: the head of the known record's text, which holds `rev` and `changes`; "-" matches no record, so the script only reads.
-- ARGV[2]: the text of the changed record.
-- ARGV[3]: the id of the change.
-- ARGV[4]: 1 to ask for a turn, else 0.
-- Returns: {1} when the record was replaced, {-1} when there is none, else {0, the current text, the change that has the turn or ''}.
-- Far longer than a round trip, and far shorter than all attempts of a change: a holder that no longer needs its turn does not give it back.
local TURN_MS = 50
local text = redis.call('GET', KEYS[1])
if not text then
  return {-1}
end
local turn = redis.call('GET', KEYS[2])
if string.sub(text, 1, #ARGV[1]) == ARGV[1] and (not turn or turn == ARGV[3]) then
  redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
  if turn then
    redis.call('DEL', KEYS[2])
  end
  return {1}
end
if ARGV[4] == '1' and not turn then
  redis.call('SET', KEYS[2], ARGV[3], 'PX', TURN_MS)
  turn = ARGV[3]
end
return {0, text, turn or ''}
