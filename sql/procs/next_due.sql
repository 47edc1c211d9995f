-- queen.next_due: how long until the next message is due, in microseconds; null: none within ten minutes.
--
-- called by  queen.fire_due; src/broker/feed.c (call "changes") and fire.c (call "next_due")
-- in         p_from_us: as in queen.fire_due
-- out        0 or less: something is due
create or replace function queen.next_due(p_from_us bigint)
returns bigint
language plpgsql stable
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    v_from timestamptz := 'epoch'::timestamptz + p_from_us * interval '1 microsecond';
    v_due  timestamptz;
begin
    select s.due_at into v_due from queen.scheduled s
     where s.due_at >= v_from and s.due_at < now() + interval '10 minutes'
     order by s.due_at limit 1;
    -- Recurring ones.
    v_due := least(v_due, (select min(n.next_at) from queen.schedules n where n.next_at < now() + interval '10 minutes'));
    return (extract(epoch from v_due - clock_timestamp()) * 1000000)::bigint;
end
$$;
