-- queen.key_time: the milliseconds in a UUIDv7 key; null for any other key.
create or replace function queen.key_time(p_key uuid)
returns bigint
language sql immutable strict parallel safe
as $$
    select case when substr(k, 15, 1) = '7'
                then ('x' || lpad(substr(k, 1, 8) || substr(k, 10, 4), 16, '0'))::bit(64)::bigint end
    from (select p_key::text) t(k)
$$;
