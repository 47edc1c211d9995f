-- queen.message_id: the id of a message, derived from its position and therefore not stored.
--
-- A UUIDv7: 48 bits of milliseconds and 10 bits of microseconds of the segment's created_at, 20 bits
-- of position in the segment, 42 bits of lane number. created_at rises strictly from segment to
-- segment of a lane, so ids rise with the sequence numbers and are unique. broker/src/segment/codec.c does the same.
create or replace function queen.message_id(p_created_at timestamptz, p_pos int, p_lane bigint)
returns uuid
language sql immutable strict parallel safe
as $$
    select (lpad(to_hex(us / 1000), 12, '0') || '7' || lpad(to_hex(us % 1000 * 4), 3, '0')
            || to_hex((1::bigint << 63) | (p_pos::bigint << 42) | (p_lane & ((1::bigint << 42) - 1))))::uuid
    from (select (extract(epoch from p_created_at) * 1000000)::bigint) t(us)
$$;
