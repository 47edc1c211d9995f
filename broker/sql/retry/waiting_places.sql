-- queen.waiting_places: count the messages of a lane with skips that at least one group has not consumed.
--
-- called by  queen.refresh_stats, for lanes whose column "skipping" is true; for other lanes a subtraction is enough
-- in         p_first, p_next: the stored messages are p_first .. p_next - 1
-- out        waiting: not consumed by a group that must receive it (without groups: not deleted); processing: those of them
--            under a lease. Groups are those of queen.consumer_stats
create or replace function queen.waiting_places(p_lane bigint, p_first bigint, p_next bigint)
returns table (waiting bigint, processing bigint)
language sql stable
as $$
    with groups as (
        select s.grp, greatest(s.cursor_seq + 1, p_first) as low, p_next as high, s.leased_to + 1 as leased
          from queen.consumer_stats s where s.lane = p_lane
         union all
        select '', p_first, p_next, null
         where not exists (select from queen.consumer_stats s where s.lane = p_lane)
    ), open as (
        -- (unnested, because PostgreSQL 14 does not aggregate multiranges)
        select r.places, g.leased
          from groups g
          cross join lateral (
               select int8multirange(int8range(g.low, g.high))
                      - coalesce(range_agg(int8range(k.first_seq, k.last_seq + 1)), '{}') as places
                 from queen.skips k where k.lane = p_lane and k.grp in ('', g.grp)) o
          cross join lateral unnest(o.places) r(places)
         where g.low < g.high
    )
    select (select coalesce(sum(upper(u.r) - lower(u.r)), 0)::bigint
              from unnest((select range_agg(o.places) from open o)) u(r)),
           (select coalesce(sum(upper(u.r) - lower(u.r)), 0)::bigint
              from unnest((select range_agg(o.places * int8range(null, o.leased)) from open o
                            where o.leased is not null)) u(r))
$$;
