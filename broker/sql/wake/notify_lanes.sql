-- queen.notify_lanes: report in the change feed that messages may be available on these lanes.
--
-- in         p_origin: the process; 0: a SQL session. Brokers ignore the following, which are for queen.refresh_stats: -1 the lane has
--            changed; -2 and -3 a dead letter was added or removed (the lane occurs once for each)
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
