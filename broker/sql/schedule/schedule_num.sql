-- queen.schedule_num: the number inside an id that queen.schedule_id has made.
--
-- Any UUID gives a number; only a row whose id is the same is the one that was meant.
create or replace function queen.schedule_num(p_id uuid)
returns bigint
language sql immutable strict parallel safe
as $$
    select ('x' || encode(substr(uuid_send(p_id), 9), 'hex'))::bit(64)::bigint & ((1::bigint << 62) - 1)
$$;
