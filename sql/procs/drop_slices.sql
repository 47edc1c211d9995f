-- queen.drop_slices: drop slices of queen.scheduled whose time is over and that are empty.
--
-- called by  src/broker/fire.c (call "drop_slices"), now and then
-- out        how many were dropped
-- locks      advisory 737020, without waiting; ACCESS EXCLUSIVE on queen.scheduled, waiting for 50 ms at most: if somebody
--            is in the way it is tried again at the next call.  Nobody can write to such a slice any more (times that have passed
--            become now), so nobody loses by it.
create or replace function queen.drop_slices()
returns int
language plpgsql
as $$
declare
    s       record;
    v_some  boolean;
    v_count int := 0;
begin
    if not exists (select from queen.scheduled_slices where to_at < now() - interval '5 minutes')
       or not pg_try_advisory_xact_lock(737020) then
        return 0;
    end if;
    set local lock_timeout = '50ms';
    for s in select * from queen.scheduled_slices where to_at < now() - interval '5 minutes' order by from_at loop
        begin
            execute format('select exists (select from queen.%I)', s.name) into v_some;
            continue when v_some;
            lock table queen.scheduled in access exclusive mode; -- first the whole, as everybody does
            execute format('select exists (select from queen.%I)', s.name) into v_some;
            continue when v_some;
            execute format('drop table queen.%I', s.name);
            delete from queen.scheduled_slices where from_at = s.from_at;
            v_count := v_count + 1;
        exception when lock_not_available or deadlock_detected then
            null;
        end;
    end loop;
    return v_count;
end
$$;
