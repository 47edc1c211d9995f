-- queen.newest_messages: a page of messages, newest first, without reading many more than it returns.
--
-- needs: last_seq_at, unpack_segment, skipped, work_place, retried_groups
-- called by  queen.list_messages, queen.status_queue_messages
-- in         p_queue, p_partition, p_namespace, p_task: filters, null: none; p_status: pending, processing, completed or
--            dead_letter, null: any; p_from, p_to: time range, null: open
-- out        the messages of the page, newest first, and their status in the groups of their lane
--
-- The newest n messages are in the n lanes that were written to last, so no other lanes are read. In each of them segments are
-- read from the end, deeper and deeper until the messages left out are older than those returned. With a status,
-- the end is the last message of that status. Messages that wait for a retry are behind the position of their group: they are pending,
-- but not found by the status pending.
create or replace function queen.newest_messages(
    p_queue text, p_partition text, p_namespace text, p_task text, p_status text,
    p_from timestamptz, p_to timestamptz, p_limit bigint, p_offset bigint)
returns table (nth bigint, id uuid, transaction_id text, lane bigint, seq bigint, lane_id uuid, lane_name text,
               queue_name text, namespace text, task text, priority int, trace_id uuid, producer_sub text,
               created_at timestamptz, status text, queue_status text, consumed_by int, groups int,
               lease_until timestamptz, retry_count int)
language plpgsql
set enable_hashjoin = on
set enable_mergejoin = on
set enable_seqscan = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
    v_now   timestamptz := clock_timestamp();
    v_n     bigint := least(p_limit, 100000) + least(p_offset, 1000000);
    v_more  bigint := v_n;      -- lanes to read: some may have nothing to return because of dead letters
    v_queues uuid[];           -- null: all
    v_lane  bigint[];
    v_low   bigint[];
    v_high  bigint[];
    v_skips boolean[];         -- the lane has deleted messages
    v_dead  bigint[];          -- number of messages that may be dropped again, because dead letters and retries are not completed
    v_most  bigint;            -- the largest of these numbers
    v_depth int := 4;
    v_deep  boolean;
    v_segs  record;
begin
    if p_status = 'completed' then
        select v_n + least(count(*), 10000) into v_more
          from (select from queen.lane_stats s where s.dead > 0
                 union all
                select from queen.lanes l where l.origin is not null) k;
    end if;
    -- The lanes, and where in them the requested messages begin and end.
    if p_status = 'dead_letter' then
        select array_agg(k.lane), array_agg(k.seq), array_agg(k.seq), array_agg(false), array_agg(0)
          into v_lane, v_low, v_high, v_skips, v_dead
          from (select distinct on (d.original_created_at, d.lane, d.seq) d.lane, d.seq
                  from queen.dead_letter_queue d
                  join queen.lanes l on l.num = d.lane
                  join queen.queues q on q.id = l.queue_id
                 where (p_queue is null or q.name = p_queue) and (p_partition is null or l.name = p_partition)
                   and (p_namespace is null or q.namespace = p_namespace) and (p_task is null or q.task = p_task)
                   and (p_from is null or d.original_created_at >= p_from)
                   and (p_to is null or d.original_created_at <= p_to)
                 order by d.original_created_at desc, d.lane, d.seq desc limit v_n) k;
    elsif coalesce(p_status, '') in ('', 'pending', 'completed') and p_to is null and p_partition is null then
        -- The statistics contain the end and its time. Lanes that were not counted yet are looked up.
        if coalesce(p_queue, p_namespace, p_task) is not null then
            v_queues := array(select q.id from queen.queues q
                               where (p_queue is null or q.name = p_queue)
                                 and (p_namespace is null or q.namespace = p_namespace) and (p_task is null or q.task = p_task));
        end if;
        select array_agg(k.lane), array_agg(k.low), array_agg(k.high), array_agg(k.skipping), array_agg(k.dead)
          into v_lane, v_low, v_high, v_skips, v_dead
          from (select c.lane, c.low, c.high, l.skipping, c.dead
                  from ((select s.lane, e.newest_at, e.low, e.high, e.dead
                           from queen.lane_stats s
                           cross join lateral (
                                select case p_status when 'completed' then s.done_at else s.newest_at end as newest_at,
                                       case p_status when 'pending' then greatest(s.leased_to, s.done) + 1 else 0 end as low,
                                       case p_status when 'completed' then s.done end as high,
                                       case p_status when 'completed' then s.dead else 0 end as dead) e
                          where e.newest_at >= coalesce(p_from, '-infinity')
                            and (v_queues is null or s.queue_id = any (v_queues))
                            -- A fully consumed lane must not displace one with messages to return.
                            and e.low < s.next_seq
                          order by e.newest_at desc, s.lane limit v_more)
                        union all
                        select n.num, g.created_at, 0, null, 0
                          from queen.lanes n
                          cross join lateral (select g.created_at from queen.segments g
                                               where g.lane = n.num order by g.first_seq desc limit 1) g
                         where not exists (select from queen.lane_stats s where s.lane = n.num)
                           and (v_queues is null or n.queue_id = any (v_queues)) and p_status is distinct from 'completed'
                           and g.created_at >= coalesce(p_from, '-infinity')) c
                  join queen.lanes l on l.num = c.lane
                 order by c.newest_at desc, c.lane limit v_more) k;
    else
        select array_agg(k.num), array_agg(k.low), array_agg(k.high), array_agg(k.skipping), array_agg(k.dead)
          into v_lane, v_low, v_high, v_skips, v_dead
          from (select l.num, b.low, e.high, l.skipping,
                       case when p_status = 'completed' then coalesce(s.dead, 0) else 0 end as dead
                  from queen.queues q
                  join queen.lanes l on l.queue_id = q.id
                  left join queen.lane_stats s on s.lane = l.num
                  left join lateral (select g.created_at from queen.segments g
                                      where s.lane is null and g.lane = l.num order by g.first_seq desc limit 1) fresh on true
                  cross join lateral (
                       select case p_status when 'processing' then s.done + 1
                                            when 'pending' then coalesce(greatest(s.leased_to, s.done), 0) + 1
                                            else 0 end as low,
                              case p_status when 'processing' then coalesce(s.leased_to, 0)
                                            when 'completed' then coalesce(s.done, 0) end as high) b
                  cross join lateral (
                       -- In most cases one of the last segments is old enough; otherwise search for it.
                       select least(b.high, case when coalesce(s.newest_at, fresh.created_at) > p_to then coalesce(
                                  (select k.first_seq + k.count - 1
                                     from (select g.first_seq, g.count, g.created_at from queen.segments g
                                            where g.lane = l.num order by g.first_seq desc limit 16) k
                                    where k.created_at <= p_to order by k.first_seq desc limit 1),
                                  queen.last_seq_at(l.num, p_to)) end) as high
                       offset 0) e -- (evaluated once, not at every use)
                  cross join lateral (select p_status = 'completed' and e.high = s.done and not l.skipping as kept) d
                  left join lateral (
                       select g.created_at from queen.segments g
                        where e.high is not null and (e.high < s.tail_seq or s.lane is null or l.skipping)
                          and d.kept is not true and g.lane = l.num and g.first_seq <= e.high
                        order by g.first_seq desc limit 1) last on true
                  cross join lateral (
                       select case when d.kept then s.done_at
                                   when e.high is null or e.high >= s.tail_seq and not l.skipping
                                   then coalesce(s.newest_at, fresh.created_at)
                                   else last.created_at end as newest_at) t
                 where (p_queue is null or q.name = p_queue) and (p_partition is null or l.name = p_partition)
                   and (p_namespace is null or q.namespace = p_namespace) and (p_task is null or q.task = p_task)
                   and t.newest_at is not null and (p_from is null or t.newest_at >= p_from)
                   and coalesce(e.high, 1) > 0
                   and (p_status is distinct from 'processing' or s.leased_to > s.done)
                   -- A fully consumed lane must not displace one with messages to return.
                   and (p_status is distinct from 'pending' or s.next_seq is null or b.low < s.next_seq)
                 order by t.newest_at desc, l.num limit v_more) k;
    end if;

    if p_status = 'completed' then
        v_dead := array(select u.dead + (select count(*) from (select from queen.attempts a where a.lane = u.lane limit 1000) k)
                          from unnest(v_lane, v_dead) with ordinality u(lane, dead, ord) order by u.ord);
    end if;
    select coalesce(max(u.dead), 0) into v_most from unnest(v_dead) u(dead);
    loop
        with tails as materialized (
            select u.lane, u.skipping, u.dead, g.first_seq, g.count, g.created_at,
                   greatest(u.low, g.first_seq) as low, least(coalesce(u.high, g.first_seq + g.count - 1),
                                                              g.first_seq + g.count - 1) as high,
                   row_number() over (partition by u.ord order by g.first_seq desc) as depth
              from unnest(v_lane, v_low, v_high, v_skips, v_dead) with ordinality u(lane, low, high, skipping, dead, ord)
              cross join lateral (
                   select k.first_seq, k.count, k.created_at from queen.segments k
                    where k.lane = u.lane and k.first_seq <= coalesce(u.high, 9223372036854775807)
                    order by k.first_seq desc limit v_depth) g
        ), summed as (
            select t.*, sum(t.high - t.low + 1 - case when t.depth = 1 then t.dead else 0 end
                            - case when t.skipping then queen.skipped(t.lane, '', t.low - 1, t.high) else 0 end)
                            over (order by t.created_at desc, t.lane, t.first_seq desc
                                  rows between unbounded preceding and 1 preceding) as before
              from tails t
             where t.high >= t.low and (p_from is null or t.created_at >= p_from)
        ), taken as (
            select s.* from summed s where coalesce(s.before, 0) < v_n
        )
        select (select coalesce(array_agg(t.lane), '{}') from taken t) as lane,
               (select array_agg(t.first_seq) from taken t) as first_seq,
               (select array_agg(t.low) from taken t) as low, (select array_agg(t.high) from taken t) as high,
               -- A lane was cut off although its oldest message read so far is among those returned.
               exists (select from taken t where t.depth = v_depth and t.low = t.first_seq and t.first_seq > 1
                          and p_status is distinct from 'dead_letter') as deeper
          into v_segs;
        exit when not v_segs.deeper or v_depth >= v_n + v_most;
        v_depth := v_depth * 4;
    end loop;

    return query
    select row_number() over (order by m.created_at desc, m.lane, m.seq desc), m.message_id, m.transaction_id, m.lane, m.seq,
           m.lane_id, m.lane_name, m.queue_name, m.namespace, m.task, m.priority, m.trace_id, m.producer_sub, m.created_at,
           m.status, m.queue_status, m.consumed_by, m.groups, m.lease_until, m.retry_count
      from (select k.message_id, k.transaction_id, k.lane, k.seq, l.id as lane_id, l.name::text as lane_name,
                   q.name::text as queue_name, q.namespace::text, q.task::text, q.priority, k.trace_id, k.producer_sub,
                   k.created_at,
                   case when d.retry_count is not null then 'dead_letter'
                        when c.queue_cursor is null and c.named > 0
                        then case when c.named_slowest >= k.seq and r.groups is null then 'completed' else 'pending' end
                        else p.status end as status,
                   p.status as queue_status,
                   (select count(*) from unnest(c.named_cursors, c.names) n(cursor, name)
                     where n.cursor >= k.seq and (n.name = any (r.groups)) is not true)::int as consumed_by,
                   coalesce(c.named, 0)::int as groups, c.lease_until, coalesce(d.retry_count, 0) as retry_count
              from (select g.lane, g.created_at, g.first_seq + u.pos as seq, u.*
                      from unnest(v_segs.lane, v_segs.first_seq, v_segs.low, v_segs.high) t(lane, first_seq, low, high)
                      -- Not a join: its plan might unpack all segments first.
                      cross join lateral (select * from queen.segments g where g.lane = t.lane and g.first_seq = t.first_seq offset 0) g
                      cross join lateral queen.unpack_segment(g.lane, g.created_at, g.count, g.keys, g.body) u
                     where g.first_seq + u.pos between t.low and t.high) k
              join queen.lanes l on l.num = k.lane
              join queen.queues q on q.id = l.queue_id
              left join (
                   select c.lane, max(st.cursor_seq) filter (where c.grp = '__QUEUE_MODE__') as queue_cursor,
                          max(st.lease_until) filter (where c.grp = '__QUEUE_MODE__') as lease_until,
                          max(st.lease_last) filter (where c.grp = '__QUEUE_MODE__' and st.lease_until > v_now) as leased_to,
                          count(*) filter (where c.grp <> '__QUEUE_MODE__') as named,
                          max(c.num) filter (where c.grp = '__QUEUE_MODE__') as consumer,
                          max(st.taken_seq) filter (where c.grp = '__QUEUE_MODE__') as taken_seq,
                          max(st.holds_from) filter (where c.grp = '__QUEUE_MODE__') as holds_from,
                          max(st.walk_seq) filter (where c.grp = '__QUEUE_MODE__') as walk_seq,
                          min(st.cursor_seq) filter (where c.grp <> '__QUEUE_MODE__') as named_slowest,
                          array_agg(st.cursor_seq) filter (where c.grp <> '__QUEUE_MODE__') as named_cursors,
                          array_agg(c.grp) filter (where c.grp <> '__QUEUE_MODE__') as names
                     from (select distinct t.lane from unnest(v_segs.lane) t(lane)) t
                     join queen.consumers c on c.lane = t.lane
                     cross join lateral (
                          select * from (
                              (select a.ver, a.cursor_seq, a.lease_last, a.lease_until, a.taken_seq, a.holds_from, a.walk_seq
                                 from queen.consumer_states_a a where a.consumer = c.num order by a.ver desc limit 1)
                              union all
                              (select b.ver, b.cursor_seq, b.lease_last, b.lease_until, b.taken_seq, b.holds_from, b.walk_seq
                                 from queen.consumer_states_b b where b.consumer = c.num order by b.ver desc limit 1)) v
                           order by ver desc limit 1) st
                    group by c.lane) c on c.lane = k.lane
              left join lateral (select max(x.retry_count) as retry_count from queen.dead_letter_queue x
                                  where x.lane = k.lane and x.seq = k.seq) d on true
              left join lateral (select w.* from queen.work_place(c.consumer, c.queue_cursor, c.taken_seq, c.holds_from, c.walk_seq, k.seq) w
                                  where c.taken_seq is not null) w on true
              cross join lateral (select exists (select from queen.attempts a
                                                  where a.message_id = k.message_id and a.outcome in ('r', 'v')) as tried) t
              left join lateral (select array_agg(g.grp) as groups, bool_or(g.leased) filter (where g.grp = '__QUEUE_MODE__') as leased
                                   from queen.retried_groups(k.lane, k.seq, k.message_id, k.transaction_id) g where t.tried) r on true
              cross join lateral (select case when r.leased is not null then case when r.leased then 'processing' else 'pending' end
                                              when c.queue_cursor >= k.seq or w.consumed then 'completed'
                                              when w.leased_until is not null or c.leased_to >= k.seq then 'processing'
                                              else 'pending' end as status) p) m
     where p_status is null or m.status = p_status
     order by 1 limit p_limit offset p_offset;
end
$$;
