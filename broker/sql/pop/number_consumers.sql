-- queen.number_consumers: queen.ensure_consumers for the broker, with a short wait for partitions that others have locked.
--
-- needs: ensure_consumers
-- called by  broker/src/broker/pop/group.c (call "ensure_consumers"), queen.discover_page, in a transaction of their own
-- in         pairs of lane and group
-- out        one row per pair whose lane exists, in order. consumer 0: another transaction has locked the lane, or is creating this
--            consumer. Try again later
-- locks      as queen.ensure_consumers, at most 100 ms for each. If that fails, one pair after the other, 10 ms for each; after ten
--            failures the remaining pairs are left for later
create or replace function queen.number_consumers(p_lane bigint[], p_group text[])
returns table (idx int, lane bigint, consumer bigint)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_lane  bigint[]; -- pairs without a consumer
    v_group text[];
    v_left  int := 10;
begin
    select array_agg(u.lane order by u.lane, u.grp), array_agg(u.grp order by u.lane, u.grp) into v_lane, v_group
      from unnest(p_lane, p_group) u(lane, grp)
     where (select c.num from queen.consumers c where c.lane = u.lane and c.grp = u.grp) is null;
    if v_lane is not null then
        perform set_config('lock_timeout', '100ms', true);
        begin
            perform queen.ensure_consumers(v_lane, v_group);
        exception when lock_not_available then
            perform set_config('lock_timeout', '10ms', true);
            for i in 1 .. cardinality(v_lane) loop
                begin
                    perform queen.ensure_consumers(v_lane[i:i], v_group[i:i]);
                exception when lock_not_available then
                    v_left := v_left - 1;
                end;
                exit when v_left = 0;
            end loop;
        end;
    end if;
    return query
    select u.ord::int - 1, u.lane, coalesce(c.num, 0)
      from unnest(p_lane, p_group) with ordinality u(lane, grp, ord)
      left join lateral (select c.num from queen.consumers c where c.lane = u.lane and c.grp = u.grp offset 0) c on true
     where c.num is not null
        or (select l.num from queen.lanes l where l.num = u.lane and (l.origin is null or l.name = u.grp)) is not null
     order by u.ord;
end
$$;
