-- Purpose: change the ledger record of a grant: the one way in which a record is ever changed.
-- Guarantee: atomic; the record is replaced only when it still is the revision that the caller changed; its expiry is kept;
--   a record that is gone is not made anew.
-- KEYS[1]: svc:egress:grant:<grant id>
-- ARGV[1]: the head of the known record's text, which holds `rev` and `changes`; "-" matches none and so only reads.
-- ARGV[2]: the text of the changed record.
-- Returns: 1 when the record was replaced, nil when there is none, else the text of the record as it is.
local text = redis.call('GET', KEYS[1])
if not text then
  return false
end
if string.sub(text, 1, #ARGV[1]) ~= ARGV[1] then
  return text
end
redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
return 1
