-- queen.maintain_slices: create slices of queen.scheduled for the next 26 hours, and drop past slices that are empty.
--
-- needs: slice_at
-- called by  broker/src/broker/schedule/timer.c (call "maintain_slices"), in a transaction of its own, once a minute
-- out        made, dropped: how many
-- locks      advisory 737020, without waiting: a session that has it does the work. To attach a slice SHARE UPDATE
--            EXCLUSIVE on queen.scheduled, which blocks neither readers nor writers. To drop one SHARE on the slice, then ACCESS
--            EXCLUSIVE on queen.scheduled. It waits at most 50 ms and tries again at the next call
--
-- Storing a message never creates a slice: without one the message goes to queen.scheduled_far. 26 hours, so that a delay of a day
-- finds its slice. A database without scheduled messages gets no slices.
create or replace function queen.maintain_slices(out made int, out dropped int)
language plpgsql
as $$
declare
    v_now  timestamptz := clock_timestamp();
    v_name text;
    v_some boolean;
    s      record;
begin
    made := 0;
    dropped := 0;
    if not pg_try_advisory_xact_lock(737020) then
        return;
    end if;
    perform set_config('lock_timeout', '50ms', true);
    begin
        for s in
            select h.slice from generate_series(queen.slice_at(v_now), queen.slice_at(v_now) + 25) h(slice)
             where (select n.is_called from queen.scheduled_nums n)
               and not exists (select from queen.scheduled_slices k where k.slice = h.slice)
        loop
            v_name := 'scheduled_' || to_char(to_timestamp(s.slice * 3600.0) at time zone 'UTC', 'YYYYMMDDHH24');
            -- Created separately and attached, because CREATE ... PARTITION OF would block all other sessions.
            execute format('create table queen.%I (like queen.scheduled including all)
                            with (vacuum_truncate = off, toast.vacuum_truncate = off)', v_name);
            execute format('alter table queen.scheduled attach partition queen.%I for values in (%s)', v_name, s.slice);
            insert into queen.scheduled_slices (slice, name) values (s.slice, v_name);
            made := made + 1;
        end loop;
    exception when lock_not_available or deadlock_detected then
        made := 0;
    end;
    -- Messages are stored only in slices of this hour and later (queen.schedule_rows), so past slices only become emptier.
    for s in
        select k.slice, k.name from queen.scheduled_slices k
         where k.slice < queen.slice_at(v_now - interval '5 minutes') order by k.slice
    loop
        begin
            execute format('lock table queen.%I in share mode', s.name);
            execute format('select exists (select from queen.%I)', s.name) into v_some;
            continue when v_some;
            lock table queen.scheduled in access exclusive mode;
            execute format('drop table queen.%I', s.name);
            delete from queen.scheduled_slices k where k.slice = s.slice;
            dropped := dropped + 1;
        exception when lock_not_available or deadlock_detected then
            exit;
        end;
    end loop;
end
$$;
