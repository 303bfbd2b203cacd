-- Purpose: tell what is stored of a principal. Needs stored.lua before it.
-- KEYS[1]: ids   KEYS[2]: sizes
-- Returns: bytes.
return stored_total(KEYS[1], KEYS[2])
