-- crm.turn_applied_day: the slice of crm.applied_event for today; emptied first if it is of an older day.
--
-- called by: crm.ingest_2, before anything else: who truncates waits for all that have read the slice, so it must not have
--            read it itself
-- out: the slice         raises: nothing
-- locks: once a day a row of applied_day, then the slice exclusively; else none
create or replace function crm.turn_applied_day() returns smallint
language plpgsql
as $$
declare
    today date := (now() at time zone 'utc')::date;
    mine smallint := (today - date '2000-01-01') % 4;
begin
    perform from crm.applied_day d where d.slice = mine and d.day >= today;
    if found then
        return mine;
    end if;
    perform from crm.applied_day d where d.slice = mine for update;
    perform from crm.applied_day d where d.slice = mine and d.day >= today; -- somebody may have been first
    if not found then
        execute format('truncate crm.applied_event_%s', mine);
        update crm.applied_day d set day = today where d.slice = mine;
    end if;
    return mine;
end
$$;
