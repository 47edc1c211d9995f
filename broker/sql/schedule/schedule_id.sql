-- queen.schedule_id: the id of a scheduled message: a UUIDv7 with its number inside.
--
-- queen.schedule_rows makes the same, for many at once.
-- out        48 bits of milliseconds, the version, 12 bits of microseconds, the variant, 62 bits of p_num:
--            queen.schedule_num gives the number back, so that ids need no index of their own
create or replace function queen.schedule_id(p_num bigint, p_at timestamptz)
returns uuid
language sql immutable strict parallel safe
as $$
    select (lpad(to_hex(us / 1000), 12, '0') || '7' || lpad(to_hex(us % 1000 * 4), 3, '0')
            || to_hex((1::bigint << 63) | (p_num & ((1::bigint << 62) - 1))))::uuid
      from (select (extract(epoch from p_at) * 1000000)::bigint) t(us)
$$;
