-- queen.uuid_v7: a new id whose text order is its time order.
--
-- Used for messages without a transaction id, because a key of this kind needs no row of its own.
create or replace function queen.uuid_v7()
returns uuid
language sql volatile
as $$
    select (lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') || '7'
            || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid
$$;
