-- queen.slowest_cursor: the lowest cursor of all groups of a lane; null if there is no group.
--
-- called by  queen.sweep
create or replace function queen.slowest_cursor(p_lane bigint)
returns bigint
language sql stable
as $$
    select min(st.cursor_seq)
      from queen.consumers c
      join lateral (
           select * from (
               (select * from queen.consumer_states_a a where a.consumer = c.num order by ver desc limit 1)
               union all
               (select * from queen.consumer_states_b b where b.consumer = c.num order by ver desc limit 1)
           ) slots order by ver desc limit 1) st on true
     where c.lane = p_lane
$$;
