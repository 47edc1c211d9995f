-- queen.forget_receipts: empty the slot of queen_streams.receipts that is not read any more.
--
-- called by  queen.rotate, hence by one broker at a time
-- out        true: it was emptied
-- locks      ACCESS EXCLUSIVE on that slot, without waiting: if another session uses it this fails, and the next call tries
--            again. An open snapshot does not prevent it.
create or replace function queen.forget_receipts()
returns boolean
language plpgsql
as $$
declare
    v_old text := ((floor(extract(epoch from clock_timestamp()) / 60)::bigint + 1) % 3)::text;
begin
    if pg_relation_size(('queen_streams.receipts_' || v_old)::regclass) = 0 then
        return false;
    end if;
    execute format('lock table queen_streams.receipts_%s in access exclusive mode nowait', v_old);
    -- If this session was delayed, the next minute may have begun, which writes to this slot. The lock excludes that from now on.
    if v_old <> ((floor(extract(epoch from clock_timestamp()) / 60)::bigint + 1) % 3)::text then
        return false;
    end if;
    execute format('truncate queen_streams.receipts_%s', v_old);
    return true;
exception when lock_not_available then
    return false;
end
$$;
