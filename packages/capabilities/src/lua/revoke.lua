-- Purpose: revoke the ledger record of a grant.
-- Guarantee: atomic; a record that was revoked never becomes active again; other fields and the expiry are kept.
-- KEYS[1]: svc:egress:grant:<grant id>
-- ARGV[1]: reason   ARGV[2]: time in ms since 1970
-- Returns: 1 when the record is now revoked by this call, 0 when it was absent or revoked before.
local text = redis.call('GET', KEYS[1])
if not text then
  return 0
end
local record = cjson.decode(text)
if record.status == 'revoked' then
  return 0
end
-- The text is patched instead of re-encoded: cjson would turn empty arrays into objects.
local fields = string.format('"status":"revoked","revoke_reason":%s,"revoked_at":%d,"rev":%d',
  cjson.encode(ARGV[1]), tonumber(ARGV[2]), record.rev + 1)
local patched, count = string.gsub(text, '"status":"active","rev":%d+', function() return fields end, 1)
if count ~= 1 then
  return redis.error_reply('ledger record is not in its canonical form')
end
redis.call('SET', KEYS[1], patched, 'KEEPTTL')
return 1
