-- queen.refresh_stats: bring the statistics up to date. Reads only lanes that have changed.
--
-- needs: latest_state, skipped, next_unskipped, waiting_places, step_lanes, count_leased
-- called by  queen.stats_chore; queen.freshen_stats; queen.refresh_stats_now
-- in         p_most       give up without changes if more lanes than this have changed (null: never)
--            p_reconcile  read all consumer states, and recount the next 1,000 lanes
--            p_wait_ms    wait this long for a pass in progress (0: not at all)
-- out        one row: lanes counted, new lanes, queues and groups whose sums changed, lanes that
--            are gone; no row if another pass is in progress or p_most was exceeded
-- locks      advisory 737010, to the end of the transaction: one pass at a time. No rows but those that only it writes
--
-- Changes since the last pass:
--   - lanes in the change feed that the snapshot of the last pass did not see (ADR 10): pushes, and by triggers
--     (origin -1) segments, consumers and lanes removed, dead letters added (-2) and removed (-3), once per dead letter;
--     queen.rotate keeps the rows that were not counted yet;
--   - consumers with a newer state than the recorded one. States are only appended, so recent ones are at the end
--     of their slot, in the blocks added since then, and in some before, because a backend fills the block it has begun.
--     A backend may return to a block begun long ago; the next reconciliation finds such a row;
--   - expired leases.
-- Sums are updated by the difference to queen.lane_stats and queen.consumer_stats. Deleted messages, and for a
-- group those that it skips, do not count (ADR 19); lanes without skips are not checked for them.
-- A pass counts a bounded number of lanes and leaves the others to the next one (queen.stats_pending).
create or replace function queen.refresh_stats(p_most int, p_reconcile boolean, p_wait_ms int default 0)
returns table (lanes int, new_lanes int, queues int, groups int, gone int)
language plpgsql
set search_path = queen, pg_temp
set enable_hashjoin = off
set enable_mergejoin = off
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    p          queen.stats_pass%rowtype;
    v_now      timestamptz;
    v_all      boolean;      -- count everything again
    v_old      boolean;      -- some of these lanes are counted again
    v_limit    int := 5 * queen.step_lanes(); -- lanes counted in one pass; the others are left to the next
    v_copied   boolean := false; -- recorded positions may be wrong
    v_from     xid8;
    v_age      int;          -- age of the oldest transaction that the last pass did not see
    v_snapshot pg_snapshot;
    v_emptied  bigint;
    v_at_a     tid;
    v_at_b     tid;
    v_lanes    bigint[];
    v_dead     bigint[];     -- dead letters of each
    v_buried   bigint;       -- dead letters that are new
    v_head     record;       -- arrays: counts from the segments of the lanes
    v_group    record;       -- arrays: differences by queue and group
    v_queue    record;       -- arrays: differences by queue
    v_sum      record;
begin
    if not pg_try_advisory_xact_lock(737010) then
        if p_wait_ms = 0 then
            return;
        end if;
        begin
            perform set_config('lock_timeout', p_wait_ms || 'ms', true);
            perform pg_advisory_xact_lock(737010);
            perform set_config('lock_timeout', '0', true);
        exception when lock_not_available then
            return;
        end;
    end if;
    select * into p from queen.stats_pass;
    if not found then -- a copy of another database: its snapshot is not valid here
        v_copied := true;
        insert into queen.stats_pass (seen) values (null) returning * into p;
        insert into queen.stats (stat_type, stat_key) values ('system', 'system') on conflict do nothing;
    elsif pg_snapshot_xmax(p.seen) > pg_snapshot_xmax(pg_current_snapshot()) then -- restored from a dump of another server
        v_copied := true;
        p.seen := null;
    end if;
    if v_copied then -- its feed has transactions that have not begun here
        delete from queen.changes c where c.xid >= pg_snapshot_xmax(pg_current_snapshot());
    end if;
    v_all := p.seen is null;
    v_from := coalesce(pg_snapshot_xmin(p.seen), '0'::xid8);
    v_now := clock_timestamp();
    v_age := case when v_all or p_reconcile then 2147483647 else age(v_from::xid) end;
    select emptied into v_emptied from queen.rotation;
    v_at_a := format('(%s,0)', case when v_all or p_reconcile or v_emptied <> p.emptied then 0
                                    else greatest(p.blocks_a - 128, 0) end);
    v_at_b := format('(%s,0)', case when v_all or p_reconcile or v_emptied <> p.emptied then 0
                                    else greatest(p.blocks_b - 128, 0) end);
    p.blocks_a := pg_relation_size('queen.consumer_states_a') / 8192;
    p.blocks_b := pg_relation_size('queen.consumer_states_b') / 8192;
    p.blocks_feed := (pg_relation_size('queen.changes_a') + pg_relation_size('queen.changes_b')) / 8192;

    -- One statement, hence one snapshot, which is stored. Dead letters are counted under it, too.
    with feed as materialized (
        select c.origin, c.lanes from queen.changes_a c
         where not v_all and c.xid >= v_from and c.xid < pg_snapshot_xmax(pg_current_snapshot()) and not pg_visible_in_snapshot(c.xid, p.seen)
         union all
        select c.origin, c.lanes from queen.changes_b c
         where not v_all and c.xid >= v_from and c.xid < pg_snapshot_xmax(pg_current_snapshot()) and not pg_visible_in_snapshot(c.xid, p.seen)
    ), moved as materialized (
        select m.consumer, max(m.ver) as ver
          from (select a.consumer, a.ver from queen.consumer_states_a a
                 where not v_all and a.ctid >= v_at_a and age(a.xmin) <= v_age
                 union all
                select b.consumer, b.ver from queen.consumer_states_b b
                 where not v_all and b.ctid >= v_at_b and age(b.xmin) <= v_age) m
         group by m.consumer
    ), touched as (
        select k.lane, sum(k.added) as added, sum(k.removed) as removed, bool_or(k.recount) as recount
          from (select t.lane, (f.origin = -2)::int as added, (f.origin = -3)::int as removed, false as recount
                  from feed f cross join lateral unnest(f.lanes) t(lane)
                 union all
                select c.lane, 0, 0, false
                  from moved m join queen.consumers c on c.num = m.consumer
                 where (select s.ver from queen.consumer_stats s where s.consumer = m.consumer) is distinct from m.ver
                 union all
                select s.lane, 0, 0, false from queen.consumer_stats s where s.lease_until <= v_now
                 union all
               (select w.lane, 0, 0, true from queen.stats_pending w where p_most is null order by w.lane limit v_limit)
                 union all
               (select l.num, 0, 0, true from queen.lanes l
                 where p_reconcile and l.num > p.reconciled_to order by l.num limit 1000)
                 union all
                select l.num, 0, 0, true from queen.lanes l where v_all
                 union all
                select s.lane, 0, 0, true from queen.lane_stats s where v_all) k
         group by k.lane
    ), counted as (
        select t.lane, t.added,
               case when s.lane is not null and not t.recount then greatest(s.dead + t.added - t.removed, 0)
                    else (select count(*) from queen.dead_letter_queue d where d.lane = t.lane) end as dead
          from touched t
          left join lateral (select k.lane, k.dead from queen.lane_stats k where k.lane = t.lane offset 0) s on true
    )
    select pg_current_snapshot(), (select emptied from queen.rotation),
           coalesce(array_agg(c.lane), '{}'), array_agg(c.dead), coalesce(sum(c.added), 0)
      into v_snapshot, v_emptied, v_lanes, v_dead, v_buried
      from counted c;
    if cardinality(v_lanes) > p_most then
        return;
    end if;
    if cardinality(v_lanes) > v_limit then
        insert into queen.stats_pending (lane, old) select u.lane, v_all from unnest(v_lanes[v_limit + 1:]) u(lane)
            on conflict (lane) do nothing;
        v_lanes := v_lanes[:v_limit];
        v_dead := v_dead[:v_limit];
    end if;
    with counted as (delete from queen.stats_pending w where w.lane = any (v_lanes) returning w.old)
    select v_all or coalesce(bool_or(c.old), false) into v_old from counted c;

    -- The segments of each lane that still exists.
    select array_agg(l.num) as lane, array_agg(l.queue_id) as queue_id, array_agg(u.dead) as dead,
           array_agg(coalesce(tail.next_seq, 1)) as next_seq,
           array_agg(coalesce(front.first_seq, tail.next_seq, 1)) as first_seq,
           array_agg(coalesce(tail.first_seq, 0)) as tail_seq,
           array_agg(case when l.skipping then newest.created_at else tail.created_at end) as newest_at, array_agg(front.created_at) as front_at,
           array_agg(l.skipping) as skipping,
           array_agg(case when l.skipping and front.first_seq is not null
                          then queen.skipped(l.num, '', front.first_seq - 1, tail.next_seq - 1) else 0 end) as deleted
      into v_head
      from unnest(v_lanes, v_dead) u(lane, dead)
      -- Not joins: a plan made for empty tables would scan all lanes, or all statistics, for each. Retry lanes contain copies and do not count.
      cross join lateral (select k.num, k.queue_id, k.skipping from queen.lanes k where k.num = u.lane and k.origin is null offset 0) l
      left join lateral (select k.tail_seq, k.first_seq from queen.lane_stats k where k.lane = u.lane offset 0) o on true
      left join lateral (
           select s.first_seq, s.first_seq + greatest(s.count, 1) as next_seq,
                  case when s.count > 0 then s.created_at end as created_at
             from queen.segments s
            where s.lane = u.lane and s.first_seq >= case when v_copied then 0 else coalesce(o.tail_seq, 0) end
            order by s.first_seq desc limit 1) tail on true
      -- From the previous front, so that the dead rows of earlier retention are not read again.
      left join lateral (
           select s.first_seq, s.created_at from queen.segments s
            where s.lane = u.lane and s.first_seq >= case when v_copied then 0 else coalesce(o.first_seq, 0) end and s.count > 0
            order by s.first_seq limit 1) front on true
      -- Deleted messages at the end are not the newest.
      left join lateral (
           select s.created_at from queen.segments s
            where l.skipping and s.lane = u.lane and s.count > 0
              and s.first_seq < coalesce((select k.first_seq from queen.skips k
                                           where k.lane = u.lane and k.grp = '' and k.last_seq >= tail.next_seq - 1
                                           order by k.first_seq desc limit 1), tail.next_seq)
            order by s.first_seq desc limit 1) newest on true;

    -- Consumers of these lanes.
    with now as materialized (
        select c.num, c.lane, h.queue_id, c.grp, st.ver, st.cursor_seq, st.total_messages as consumed,
               st.total_batches as batches, st.last_at,
               -- Of a work queue: not delivered yet, or delivered and not settled.
               case when st.taken_seq is null then greatest(h.next_seq - n.seq, 0)
                    else greatest(h.next_seq - greatest(st.taken_seq + 1, h.first_seq), 0) + st.batch_size end
               - case when h.skipping then queen.skipped(c.lane, c.grp, greatest(n.seq - 1, st.taken_seq), h.next_seq - 1) else 0 end as lag,
               case when st.batch_size > 0 and st.taken_seq is not null then st.taken_seq
                    when st.lease_until > v_now then st.lease_last end as leased_to,
               case when st.taken_seq is not null then leased.until when st.lease_until > v_now then st.lease_until end as lease_until,
               wait.created_at as oldest_at,
               case when st.taken_seq is not null then coalesce(leased.leased, 0) end as leased
          from unnest(v_head.lane, v_head.queue_id, v_head.first_seq, v_head.next_seq, v_head.skipping)
               h(lane, queue_id, first_seq, next_seq, skipping)
          cross join lateral (select k.num, k.lane, k.grp from queen.consumers k where k.lane = h.lane offset 0) c
          join lateral (
               (select a.ver, a.cursor_seq, a.total_messages, a.total_batches, a.last_at, a.lease_last, a.lease_until, a.taken_seq, a.batch_size,
                       a.holds_from, a.walk_seq, a.swept_at
                  from queen.consumer_states_a a where a.consumer = c.num order by a.ver desc limit 1)
               union all
               (select b.ver, b.cursor_seq, b.total_messages, b.total_batches, b.last_at, b.lease_last, b.lease_until, b.taken_seq, b.batch_size,
                       b.holds_from, b.walk_seq, b.swept_at
                  from queen.consumer_states_b b where b.consumer = c.num order by b.ver desc limit 1)
               order by ver desc limit 1) st on true
          left join lateral (select k.* from queen.count_leased(c.num, st.holds_from, st.walk_seq, st.swept_at, st.batch_size, v_now) k
                              where st.taken_seq is not null and st.batch_size > 0) leased on true
          -- The next message that the group receives.
          cross join lateral (
               select case when h.skipping
                           then queen.next_unskipped(c.lane, c.grp, greatest(st.cursor_seq + 1, h.first_seq))
                           else greatest(st.cursor_seq + 1, h.first_seq) end as seq) n
          left join lateral (
               select s.created_at from queen.segments s
                where s.lane = c.lane and h.next_seq > n.seq and s.first_seq <= n.seq
                order by s.first_seq desc limit 1) wait on true
    ), before as materialized (
        select s.* from unnest(v_lanes) u(lane)
          cross join lateral (select k.* from queen.consumer_stats k where k.lane = u.lane offset 0) s
    ), written as (
        insert into queen.consumer_stats as t
               (consumer, lane, queue_id, grp, ver, cursor_seq, lag, consumed, leased_to, lease_until, oldest_at,
                batches, last_at, leased)
        select n.num, n.lane, n.queue_id, n.grp, n.ver, n.cursor_seq, n.lag, n.consumed, n.leased_to, n.lease_until,
               n.oldest_at, n.batches, n.last_at, n.leased
          from now n
            on conflict (consumer) do update
           set ver = excluded.ver, cursor_seq = excluded.cursor_seq, lag = excluded.lag, consumed = excluded.consumed,
               leased_to = excluded.leased_to, lease_until = excluded.lease_until, oldest_at = excluded.oldest_at,
               batches = excluded.batches, last_at = excluded.last_at, leased = excluded.leased
         where (t.ver, t.lag, t.lease_until, t.oldest_at, t.batches, t.leased)
               is distinct from (excluded.ver, excluded.lag, excluded.lease_until, excluded.oldest_at, excluded.batches, excluded.leased)
    ), removed as (
        delete from queen.consumer_stats s
         where s.consumer = any (array(select b.consumer from before b except select n.num from now n))
    ), changed as (
        select k.queue_id, k.grp, sum(k.sign) as members, sum(k.sign * k.lag) as lag,
               sum(k.sign) filter (where k.lag > 0) as lagging, sum(k.sign * k.consumed) as consumed,
               -- of remaining consumers: messages consumed by a deleted group stay consumed
               sum(k.sign * k.consumed) filter (where k.stays) as passed
          -- (sorted, not joined, because the number of rows is unknown)
          from (select u.*, bool_or(u.sign = 1) over (partition by u.num) as stays
                  from (select n.num, n.queue_id, n.grp, 1 as sign, n.lag, n.consumed from now n
                         union all
                        select b.consumer, b.queue_id, b.grp, -1, b.lag, b.consumed from before b) u) k
         group by k.queue_id, k.grp
    )
    select array_agg(c.queue_id) as queue_id, array_agg(c.grp) as grp, array_agg(c.members) as members,
           array_agg(c.lag) as lag, array_agg(coalesce(c.lagging, 0)) as lagging,
           array_agg(c.consumed) as consumed, array_agg(coalesce(c.passed, 0)) as passed
      into v_group
      from changed c;

    insert into queen.stats as t
           (stat_type, stat_key, queue_id, consumer_group, child_count, pending_messages, completed_messages, lagging,
            oldest_pending_at, last_computed_at)
    select 'group', u.queue_id || '/' || u.grp, u.queue_id, u.grp, u.members, u.lag, u.consumed, u.lagging,
           (select s.oldest_at from queen.consumer_stats s
             where s.queue_id = u.queue_id and s.grp = u.grp and s.oldest_at is not null
             order by s.oldest_at limit 1), v_now
      from unnest(v_group.queue_id, v_group.grp, v_group.members, v_group.lag, v_group.consumed, v_group.lagging)
           u(queue_id, grp, members, lag, consumed, lagging)
        on conflict (stat_type, stat_key) do update
       set child_count = t.child_count + excluded.child_count,
           pending_messages = t.pending_messages + excluded.pending_messages,
           completed_messages = t.completed_messages + excluded.completed_messages,
           lagging = t.lagging + excluded.lagging, oldest_pending_at = excluded.oldest_pending_at,
           last_computed_at = v_now;
    delete from queen.stats s
     where s.stat_type = 'group' and s.child_count <= 0
       and s.stat_key = any (array(select u.queue_id || '/' || u.grp
                                     from unnest(v_group.queue_id, v_group.grp) u(queue_id, grp)));

    -- The lanes themselves.
    with now as materialized (
        select h.lane, h.queue_id, h.first_seq, h.next_seq, h.tail_seq, h.dead, h.newest_at, h.deleted,
               -- The groups of a work queue have different messages: the figures are those of the group that has most left.
               case when c.in_flight is not null then c.lag
                    when h.skipping then k.waiting
                    else greatest(h.next_seq - greatest(coalesce(c.slowest + 1, 0), h.first_seq), 0) end as waiting,
               case when c.in_flight is not null then least(c.in_flight, c.lag)
                    when h.skipping then k.processing else coalesce(c.leased, 0) end as processing,
               case when c.slowest is not null then c.oldest_at else h.front_at end as oldest_at,
               coalesce(c.done, c.slowest, 0) as done, last.created_at as done_at, coalesce(c.leased_to, 0) as leased_to
          from unnest(v_head.lane, v_head.queue_id, v_head.first_seq, v_head.next_seq, v_head.tail_seq, v_head.dead,
                      v_head.newest_at, v_head.front_at, v_head.skipping, v_head.deleted)
               h(lane, queue_id, first_seq, next_seq, tail_seq, dead, newest_at, front_at, skipping, deleted)
          left join lateral (
               select min(s.cursor_seq) as slowest, min(s.oldest_at) as oldest_at, max(s.lag) as lag, max(s.leased) as in_flight,
                      max(s.cursor_seq) filter (where s.grp = '__QUEUE_MODE__') as done,
                      max(s.leased_to) filter (where s.grp = '__QUEUE_MODE__') as leased_to,
                      (select sum(upper(r) - lower(r)) from unnest(range_agg(
                              int8range(greatest(s.cursor_seq + 1, h.first_seq),
                                        greatest(s.leased_to + 1, s.cursor_seq + 1, h.first_seq)))
                              filter (where s.leased_to is not null)) r) as leased
                 from queen.consumer_stats s where s.lane = h.lane) c on true
          left join lateral (select w.waiting, w.processing from queen.waiting_places(h.lane, h.first_seq, h.next_seq) w
                              where h.skipping) k on true
          left join lateral (
               select g.created_at from queen.segments g
                where g.lane = h.lane and g.first_seq between h.first_seq and coalesce(c.done, c.slowest)
                order by g.first_seq desc limit 1) last on true
    ), before as materialized (
        select s.* from unnest(v_lanes) u(lane)
          cross join lateral (select k.* from queen.lane_stats k where k.lane = u.lane offset 0) s
    ), written as (
        insert into queen.lane_stats as t
               (lane, queue_id, first_seq, next_seq, tail_seq, waiting, processing, dead, newest_at, oldest_at, deleted,
                done, done_at, leased_to)
        select n.lane, n.queue_id, n.first_seq, n.next_seq, n.tail_seq, n.waiting, n.processing, n.dead, n.newest_at,
               n.oldest_at, n.deleted, n.done, n.done_at, n.leased_to
          from now n
            on conflict (lane) do update
           set first_seq = excluded.first_seq, next_seq = excluded.next_seq, tail_seq = excluded.tail_seq,
               waiting = excluded.waiting, processing = excluded.processing, dead = excluded.dead,
               newest_at = excluded.newest_at, oldest_at = excluded.oldest_at, deleted = excluded.deleted,
               done = excluded.done, done_at = excluded.done_at, leased_to = excluded.leased_to
         where (t.first_seq, t.next_seq, t.waiting, t.processing, t.dead, t.oldest_at, t.deleted, t.done, t.done_at, t.leased_to) is distinct from
               (excluded.first_seq, excluded.next_seq, excluded.waiting, excluded.processing, excluded.dead,
                excluded.oldest_at, excluded.deleted, excluded.done, excluded.done_at, excluded.leased_to)
    ), removed as (
        delete from queen.lane_stats s
         where s.lane = any (array(select b.lane from before b except select n.lane from now n))
        returning 1
    ), changed as (
        select k.queue_id, sum(k.sign) filter (where k.next_seq > 1) as lanes,
               sum(k.sign * k.total) as total, sum(k.sign * (k.waiting - k.processing)) as pending,
               sum(k.sign * k.processing) as processing, sum(k.sign * k.dead) as dead,
               sum(k.sign * greatest(k.total - k.waiting - k.dead, 0)) as completed,
               sum(k.sign * (k.next_seq - 1)) filter (where k.stays) as pushed, sum(k.passed) as passed,
               max(k.newest_at) as newest_at, count(*) filter (where k.sign = 1 and not k.was) as new_lanes
          from (select u.*, bool_or(u.sign = 1) over (partition by u.lane) as stays,
                       bool_or(u.sign = -1) over (partition by u.lane) as was
                  from (select n.lane, n.queue_id, 1 as sign, n.next_seq, n.next_seq - n.first_seq - n.deleted as total,
                               n.waiting, n.processing, n.dead, n.newest_at, 0 as passed
                          from now n
                         union all
                        select b.lane, b.queue_id, -1, b.next_seq, b.next_seq - b.first_seq - b.deleted,
                               b.waiting, b.processing, b.dead, b.newest_at, 0
                          from before b
                         union all
                        select null, g.queue_id, 0, 1, 0, 0, 0, 0, null, g.passed
                          from unnest(v_group.queue_id, v_group.passed) g(queue_id, passed)) u) k
         group by k.queue_id
    )
    select array_agg(c.queue_id) as queue_id, array_agg(coalesce(c.lanes, 0)) as lanes, array_agg(c.total) as total,
           array_agg(c.pending) as pending, array_agg(c.processing) as processing, array_agg(c.dead) as dead,
           array_agg(c.completed) as completed, array_agg(coalesce(c.pushed, 0)) as pushed,
           array_agg(c.passed) as passed, array_agg(c.newest_at) as newest_at,
           coalesce(sum(c.new_lanes), 0)::int as new_lanes,
           (select count(*) from removed) as gone
      into v_queue
      from changed c;

    insert into queen.stats as t
           (stat_type, stat_key, queue_id, child_count, total_messages, pending_messages, processing_messages,
            completed_messages, dead_letter_messages, ever_pushed, ever_consumed, newest_message_at,
            oldest_pending_at, last_computed_at)
    select 'queue', u.queue_id::text, u.queue_id, u.lanes, u.total, u.pending, u.processing, u.completed, u.dead,
           u.pushed, u.passed, u.newest_at,
           (select s.oldest_at from queen.lane_stats s
             where s.queue_id = u.queue_id and s.oldest_at is not null order by s.oldest_at limit 1), v_now
      from unnest(v_queue.queue_id, v_queue.lanes, v_queue.total, v_queue.pending, v_queue.processing, v_queue.completed,
                  v_queue.dead, v_queue.pushed, v_queue.passed, v_queue.newest_at)
           u(queue_id, lanes, total, pending, processing, completed, dead, pushed, passed, newest_at)
        on conflict (stat_type, stat_key) do update
       set child_count = t.child_count + excluded.child_count,
           total_messages = t.total_messages + excluded.total_messages,
           pending_messages = t.pending_messages + excluded.pending_messages,
           processing_messages = t.processing_messages + excluded.processing_messages,
           completed_messages = t.completed_messages + excluded.completed_messages,
           dead_letter_messages = t.dead_letter_messages + excluded.dead_letter_messages,
           ever_pushed = t.ever_pushed + excluded.ever_pushed, ever_consumed = t.ever_consumed + excluded.ever_consumed,
           newest_message_at = greatest(t.newest_message_at, excluded.newest_message_at),
           oldest_pending_at = excluded.oldest_pending_at,
           max_lag_seconds = greatest(extract(epoch from v_now - excluded.oldest_pending_at), 0),
           last_computed_at = v_now;
    -- Remove the rows of deleted queues.
    delete from queen.stats s
     where s.queue_id = any (v_queue.queue_id)
       and not exists (select from queen.queues q where q.id = s.queue_id);
    delete from queen.stats_history h
     where h.stat_type = 'queue' and v_queue.gone > 0
       and h.stat_key = any (array(select u.id::text from unnest(v_queue.queue_id) u(id)
                                    where not exists (select from queen.queues q where q.id = u.id)));

    select coalesce(sum(u.lanes), 0) as lanes, coalesce(sum(u.total), 0) as total, coalesce(sum(u.pending), 0) as pending,
           coalesce(sum(u.processing), 0) as processing, coalesce(sum(u.completed), 0) as completed,
           coalesce(sum(u.dead), 0) as dead, coalesce(sum(u.pushed), 0) as pushed, coalesce(sum(u.passed), 0) as passed,
           max(u.newest_at) as newest_at
      into v_sum
      from unnest(v_queue.lanes, v_queue.total, v_queue.pending, v_queue.processing, v_queue.completed, v_queue.dead,
                  v_queue.pushed, v_queue.passed, v_queue.newest_at)
           u(lanes, total, pending, processing, completed, dead, pushed, passed, newest_at);
    if v_lanes <> '{}' then
        update queen.stats t
           set child_count = t.child_count + v_sum.lanes, total_messages = t.total_messages + v_sum.total,
               pending_messages = t.pending_messages + v_sum.pending,
               processing_messages = t.processing_messages + v_sum.processing,
               completed_messages = t.completed_messages + v_sum.completed,
               dead_letter_messages = t.dead_letter_messages + v_sum.dead,
               ever_pushed = t.ever_pushed + v_sum.pushed, ever_consumed = t.ever_consumed + v_sum.passed,
               ever_dead = t.ever_dead + v_buried,
               newest_message_at = greatest(t.newest_message_at, v_sum.newest_at),
               prev_total_messages = t.ever_pushed, prev_completed_messages = t.ever_consumed,
               prev_snapshot_at = t.last_computed_at, last_computed_at = v_now,
               ingested_per_second = v_sum.pushed / greatest(extract(epoch from v_now - t.last_computed_at), 0.001),
               processed_per_second = v_sum.passed / greatest(extract(epoch from v_now - t.last_computed_at), 0.001)
         where t.stat_type = 'system';
        -- Messages from before the first count are not new.
        insert into queen.stats_history as t
               (stat_type, stat_key, bucket_time, total_messages, pending_messages, processing_messages,
                completed_messages, dead_letter_messages, messages_ingested, messages_processed, max_lag_seconds)
        select s.stat_type, s.stat_key, date_trunc('minute', v_now), s.total_messages, s.pending_messages,
               s.processing_messages, s.completed_messages, s.dead_letter_messages, u.pushed, u.passed,
               extract(epoch from v_now - case when u.type = 'queue' then s.oldest_pending_at else ( -- of the system once a minute
                   select min(o.oldest_pending_at) from queen.stats o
                    where o.stat_type = 'queue'
                      and not exists (select from queen.stats_history h where h.stat_type = 'system' and h.stat_key = 'system'
                                         and h.bucket_time = date_trunc('minute', v_now) and h.max_lag_seconds is not null)) end)
          from (select 'queue' as type, k.queue_id::text as key, k.pushed, k.passed
                  from unnest(v_queue.queue_id, v_queue.pushed, v_queue.passed) k(queue_id, pushed, passed)
                 where k.pushed > 0 or k.passed > 0
                 union all
                select 'system', 'system', v_sum.pushed, v_sum.passed) u
          join queen.stats s on s.stat_type = u.type and s.stat_key = u.key
         where not v_old
            on conflict (stat_type, stat_key, bucket_time) do update
           set total_messages = excluded.total_messages, pending_messages = excluded.pending_messages,
               processing_messages = excluded.processing_messages, completed_messages = excluded.completed_messages,
               dead_letter_messages = excluded.dead_letter_messages,
               messages_ingested = t.messages_ingested + excluded.messages_ingested,
               messages_processed = t.messages_processed + excluded.messages_processed,
               max_lag_seconds = greatest(t.max_lag_seconds, excluded.max_lag_seconds);
    end if;

    -- A pass that found nothing need not be stored at once: the next one finds the same.
    if v_lanes <> '{}' or p_reconcile or v_all or v_emptied <> p.emptied
       or p.passed_at is null or p.passed_at < v_now - interval '2 seconds' then
        update queen.stats_pass t
           set seen = v_snapshot, emptied = v_emptied, blocks_a = p.blocks_a, blocks_b = p.blocks_b,
               blocks_feed = p.blocks_feed, passed_at = v_now,
               reconciled_at = case when p_reconcile then v_now else t.reconciled_at end,
               reconciled_to = case when not p_reconcile then t.reconciled_to
                                    else coalesce((select max(k.num)
                                                     from (select l.num from queen.lanes l where l.num > t.reconciled_to
                                                            order by l.num limit 1000) k
                                                   having count(*) = 1000), 0) end;
    end if;
    lanes := cardinality(v_lanes);
    new_lanes := coalesce(v_queue.new_lanes, 0);
    queues := coalesce(cardinality(v_queue.queue_id), 0);
    groups := coalesce(cardinality(v_group.queue_id), 0);
    gone := coalesce(v_queue.gone, 0);
    return next;
end
$$;
