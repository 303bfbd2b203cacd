-- Purpose: total size of what Redis stores for a principal. Needs stored.lua before it.
-- KEYS[1]: ids   KEYS[2]: sizes
-- Returns: bytes.
return stored_total(KEYS[1], KEYS[2])
