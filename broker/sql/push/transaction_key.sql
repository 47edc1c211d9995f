-- queen.transaction_key: the 16-byte deduplication key of a transaction id.
--
-- called by  the JSON-taking functions; broker/src/segment/keys.c computes the same
-- in         any text
-- out        a canonical lower-case UUID is its own key, unless it is of version 8; any other
--            text gets 16 bytes of SHA-256 marked as version 8. So the two kinds never collide.
create or replace function queen.transaction_key(p_id text)
returns uuid
language sql immutable strict parallel safe
as $$
    select case
        when p_id ~ '^[0-9a-f]{8}-[0-9a-f]{4}-[0-79a-f][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$'
        then p_id::uuid
        else encode(set_byte(h, 6, (get_byte(h, 6) & 15) | 128), 'hex')::uuid
        end
    from (select substr(sha256(convert_to(p_id, 'UTF8')), 1, 16)) d(h)
$$;
