-- queen.lane_counts: the statistics of the partitions of a queue that were ever written to.
--
-- called by  queen.get_queue, queen.status_queue, queen.list_partitions
-- in         p_queue_id null: all queues
-- out        columns as in queen.queue_stats; in no order
--
-- PostgreSQL inlines it into the calling statement (so: no settings, and not volatile), and columns that are not
-- needed there are not computed.
create or replace function queen.lane_counts(p_queue_id uuid)
returns table (lane bigint, queue_id uuid, id uuid, name text, created_at timestamptz, total bigint, pending bigint, processing bigint,
               completed bigint, dead_letter bigint, oldest_at timestamptz, newest_at timestamptz)
language sql stable
as $$
    select l.num, l.queue_id, l.id, l.name::text, l.created_at, coalesce(s.next_seq - s.first_seq - s.deleted, 0),
           greatest(coalesce(s.waiting - s.processing, 0), 0), coalesce(s.processing, 0),
           greatest(coalesce(s.next_seq - s.first_seq - s.deleted - s.waiting - s.dead, 0), 0), coalesce(s.dead, 0),
           s.oldest_at, s.newest_at
      from queen.lanes l
      left join queen.lane_stats s on s.lane = l.num
     where (p_queue_id is null or l.queue_id = p_queue_id)
       and (s.next_seq > 1 or exists (select from queen.segments g where g.lane = l.num))
$$;
