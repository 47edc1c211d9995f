-- queen.notify_lanes: write into the change feed that something may be available on these lanes.
--
-- in         p_origin: the process; 0: a SQL session.  For queen.refresh_stats alone, and no broker looks: -1 something has
--            changed there; -2 and -3 a dead letter was added, or removed (the lane once for each)
create or replace function queen.notify_lanes(p_origin int, p_lanes bigint[])
returns void
language plpgsql
as $$
begin
    if (select active from queen.rotation) = 'a' then
        insert into queen.changes_a (origin, slot, lanes) values (p_origin, 'a', p_lanes);
    else
        insert into queen.changes_b (origin, slot, lanes) values (p_origin, 'b', p_lanes);
    end if;
end
$$;
