-- crm.turn_applied_day: returns the slot of crm.applied_event for the ids of this transaction.
--
-- The slots rotate.  On a new day by this server's clock the oldest slot is truncated and becomes the newest, one step at
-- a time.  So the ids of the last three days on which events were applied are kept, regardless of pauses and clock changes.
-- A rotation waits for the transactions that use the previous slot, so of two transactions that apply the same event one
-- sees the other's id.
--
-- called by: crm.ingest, before anything else: the truncate waits for all transactions that have read the slot, so this
--            one must not have read it
-- out: the slot         raises: nothing
-- locks: advisory 7642/9 shared until commit; once a day exclusively, then the slot exclusively
create or replace function crm.turn_applied_day() returns smallint
language plpgsql
as $$
declare
    today date := (now() at time zone 'utc')::date;
    newest record;
    done text;
begin
    select d.slot, d.day into newest from crm.applied_day d order by d.day desc, d.slot desc limit 1;
    if newest.day >= today then
        done := pg_advisory_xact_lock_shared(7642, 9);
    else
        done := pg_advisory_xact_lock(7642, 9);
    end if;
    -- Check again behind the lock: another transaction may have rotated first.
    select d.slot, d.day into newest from crm.applied_day d order by d.day desc, d.slot desc limit 1;
    if newest.day < today then
        newest.slot := (newest.slot + 1) % 4;
        execute format('truncate crm.applied_event_%s', newest.slot);
        update crm.applied_day d set day = today where d.slot = newest.slot;
    end if;
    return newest.slot;
end
$$;
