-- queen.skipped: how many of the messages p_after + 1 .. p_upto of a lane a group skips.
--
-- called by  functions that count pending messages; only for lanes whose column "skipping" is true
-- in         p_group '': how many are deleted
create or replace function queen.skipped(p_lane bigint, p_group text, p_after bigint, p_upto bigint)
returns bigint
language sql stable
as $$
    select coalesce(sum(upper(r.places) - lower(r.places)), 0)::bigint
      from (select range_agg(int8range(k.first_seq, k.last_seq + 1)) * int8multirange(int8range(p_after + 1, p_upto + 1))
              from queen.skips k
             where p_after < p_upto and k.lane = p_lane and k.grp in ('', p_group)
               and k.first_seq <= p_upto and k.last_seq > p_after) a(skipped)
      cross join lateral unnest(a.skipped) r(places)
$$;
