-- queen.uuid_v7: a fresh id whose text order is its time order.
--
-- Given to messages without a transaction id: a key of this kind costs no row of its own.
create or replace function queen.uuid_v7()
returns uuid
language sql volatile
as $$
    select (lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') || '7'
            || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid
$$;
