-- queen.lane_figures: the maintained figures of the partitions of a queue that were ever written to.
--
-- called by  queen.get_queue, queen.status_queue, queen.list_partitions
-- out        by name; columns as in queen.queue_figures
create or replace function queen.lane_figures(p_queue_id uuid)
returns table (lane bigint, id uuid, name text, created_at timestamptz, total bigint, pending bigint, processing bigint,
               completed bigint, dead_letter bigint, oldest_at timestamptz, newest_at timestamptz,
               consumed bigint)
language sql volatile
set enable_hashjoin = on
set enable_mergejoin = on
set enable_seqscan = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
as $$
    select l.num, l.id, l.name::text, l.created_at, coalesce(s.next_seq - s.first_seq, 0),
           coalesce(s.waiting - s.processing, 0), coalesce(s.processing, 0),
           greatest(coalesce(s.next_seq - s.first_seq - s.waiting - s.dead, 0), 0), coalesce(s.dead, 0),
           s.oldest_at, s.newest_at, coalesce(c.consumed, 0)
      from queen.lanes l
      left join queen.lane_stats s on s.lane = l.num
      left join lateral (select sum(k.consumed)::bigint as consumed from queen.consumer_stats k
                          where k.lane = l.num) c on true
     where l.queue_id = p_queue_id
       and (s.next_seq > 1 or exists (select from queen.segments g where g.lane = l.num))
     order by l.name
$$;
