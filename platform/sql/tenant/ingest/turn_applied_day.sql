-- crm.turn_applied_day: the slice of crm.applied_event for the ids of this transaction.
--
-- The slices take turns.  On a new day by this server's clock the oldest one is emptied and becomes the newest, one step at a time: the ids of the
-- last three days on which events were applied are known, however long nothing was applied and whatever the clock was set to.
-- A turn waits for the transactions that use the slice before it, so of two that apply the same event one sees the other's id.
--
-- called by: crm.ingest, before anything else: who truncates waits for all that have read the slice, so it must not have
--            read it itself
-- out: the slice         raises: nothing
-- locks: advisory 7642/9 shared until commit; once a day alone, then the slice exclusively
create or replace function crm.turn_applied_day() returns smallint
language plpgsql
as $$
declare
    today date := (now() at time zone 'utc')::date;
    newest record;
    done text;
begin
    select d.slice, d.day into newest from crm.applied_day d order by d.day desc, d.slice desc limit 1;
    if newest.day >= today then
        done := pg_advisory_xact_lock_shared(7642, 9);
    else
        done := pg_advisory_xact_lock(7642, 9);
    end if;
    -- Again, behind the lock: somebody may have been first.
    select d.slice, d.day into newest from crm.applied_day d order by d.day desc, d.slice desc limit 1;
    if newest.day < today then
        newest.slice := (newest.slice + 1) % 4;
        execute format('truncate crm.applied_event_%s', newest.slice);
        update crm.applied_day d set day = today where d.slice = newest.slice;
    end if;
    return newest.slice;
end
$$;
