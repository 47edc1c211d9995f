-- queen.ensure_consumers: find the consumers of lanes for a group, and create missing ones.
--
-- needs: start_time, cursor_at
-- called by  queen.number_consumers; queen.discover; the JSON surface
-- in         pairs of lane and group
-- out        one row per pair whose lane exists, in order; a retry lane exists only for its own group
-- locks      lanes that get a consumer, against deletion, in num order; new rows of consumers by (lane, group)
create or replace function queen.ensure_consumers(p_lane bigint[], p_group text[])
returns table (idx int, lane bigint, consumer bigint)
language plpgsql
as $$
#variable_conflict use_column
begin
    if exists (select from unnest(p_lane, p_group) u(lane, grp)
                where (select c.num from queen.consumers c where c.lane = u.lane and c.grp = u.grp) is null) then
        with made as (
            insert into queen.consumers (lane, grp)
            select l.num, u.grp
              from (select d.lane, d.grp from (select distinct lane, grp from unnest(p_lane, p_group) u(lane, grp)) d
                     -- Not an anti-join: a plan made when there were no consumers would scan all groups of the lane.
                     where (select c.num from queen.consumers c
                             where c.lane = d.lane and c.grp = d.grp) is null
                     order by d.lane, d.grp offset 0) u
              -- Not a join: a plan made when there was one lane would scan all lanes for each.
              cross join lateral (select l.num from queen.lanes l
                                   where l.num = u.lane and (l.origin is null or l.name = u.grp)
                                     for key share) l
                on conflict (lane, grp) do nothing
            returning num, lane, grp)
        insert into queen.consumer_states (consumer, ver, cursor_seq, slot)
        -- As queen.start_cursor. Most groups start at the beginning or at the end, which needs no call.
        select made.num, 1,
               coalesce(case when t.starts_at > head.created_at then head.last_seq
                             when t.starts_at is not null
                             then queen.cursor_at(made.lane, t.starts_at - interval '1 microsecond') end, 0),
               r.active
          from made
          cross join queen.rotation r
          left join lateral queen.start_time(made.lane, made.grp) t on true
          left join lateral (select s.created_at, s.first_seq + greatest(s.count, 1) - 1 as last_seq from queen.segments s
                              where s.lane = made.lane order by s.first_seq desc limit 1) head on t.starts_at is not null;
    end if;
    return query
    select u.ord::int - 1, u.lane, c.num
      from unnest(p_lane, p_group) with ordinality u(lane, grp, ord)
      cross join lateral (select c.num from queen.consumers c
                           where c.lane = u.lane and c.grp = u.grp offset 0) c
     order by u.ord;
end
$$;
