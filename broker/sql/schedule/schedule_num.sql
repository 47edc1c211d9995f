-- queen.schedule_num: the number inside the id of a scheduled message.
--
-- The id is a UUIDv7: 48 bits of milliseconds, the version, 12 bits of microseconds, the variant, 62 bits of the number (queen.schedule_rows).  So
-- ids need no index of their own.  Every UUID gives a number: the caller must compare the id of the row that it finds.
create or replace function queen.schedule_num(p_id uuid)
returns bigint
language sql immutable strict parallel safe
as $$
    select ('x' || encode(substr(uuid_send(p_id), 9), 'hex'))::bit(64)::bigint & ((1::bigint << 62) - 1)
$$;
