-- queen.next_due: the time until the next message is due, in microseconds; null: none within ten minutes.
--
-- needs: slice_at
-- called by  queen.fire_scheduled; broker/src/broker/wake/feed.c (call "changes")
-- in         p_from_us: ignore earlier messages: they were delivered, or are locked (see queen.fire_scheduled)
-- out        0 or less: a message is due
create or replace function queen.next_due(p_from_us bigint)
returns bigint
language plpgsql stable
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    v_from   timestamptz := 'epoch'::timestamptz + p_from_us * interval '1 microsecond';
    v_to     timestamptz := now() + interval '10 minutes';
    v_slices int[] := array(select k.slice from queen.scheduled_slices k
                             where k.slice between queen.slice_at(v_from) and queen.slice_at(v_to));
    v_due    timestamptz;
    v_sliced timestamptz;
begin
    select s.due_at into v_due from queen.scheduled_far s
     where s.due_at >= v_from and s.due_at < v_to order by s.due_at limit 1;
    if v_slices <> '{}' then
        -- Values, not parameters of a cached plan, so that only the needed slices are opened and locked.
        execute 'select s.due_at from queen.scheduled s
                  where s.slice = any ($1) and s.due_at >= $2 and s.due_at < $3 order by s.due_at limit 1'
           into v_sliced using v_slices, v_from, v_to;
    end if;
    v_due := least(v_due, v_sliced,
                   (select min(n.next_at) from queen.schedules n where n.next_at >= v_from and n.next_at < v_to));
    return (extract(epoch from v_due - clock_timestamp()) * 1000000)::bigint;
end
$$;
