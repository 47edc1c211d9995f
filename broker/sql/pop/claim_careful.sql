-- queen.claim_careful: lease lanes for pops and return their messages, for queues with any options.
--
-- numbers:   status claim_status
-- needs: next_unskipped, past_settled, suspicion, note_expired, limit_deliveries
-- called by  broker/src/broker/pop/claim.c (call "claim_careful"), for cases that queen.claim leaves to it; queen.pop_one
-- in         one element per target, a consumer that a pop may use, in order of
--            preference: p_pop: which pop (ascending); p_batch, p_parts: that pop's limits over all its targets;
--            p_auto: acknowledge on delivery; p_lease: the pop's lease (p_lease_text if it is not a UUID);
--            p_seconds: lease time, 0: the queue's
-- out        one row per target that was not claimed (segment columns null), and one row per segment
--            of every claimed one, in order:
--              status 0 claimed; wait_us: remaining time of the lease
--                     1 busy: another session has locked this consumer
--                     2 leased: until wait_us from now
--                     3 empty
--                     4 not yet: delay, window buffer or retry delay; until wait_us from now
--                     5 gone: no such consumer (queue or group deleted)
--                     6 not needed: the pop got enough from earlier targets
--                     8 a work queue, or it was one: call queen.claim_work
--            more: messages are left after the claimed ones; buried: messages before them that became dead letters now, because they were
--            delivered too often (queen.limit_deliveries)
-- locks      consumers in num order, skipping those that others have locked
create or replace function queen.claim_careful(
    p_pop int[], p_consumer bigint[], p_batch int[], p_parts int[], p_auto boolean[],
    p_lease uuid[], p_lease_text text[], p_seconds int[])
returns table (target int, status int2, wait_us bigint, lane bigint, lane_id uuid, lane_name text,
               queue_name text, retries int, start_seq bigint, take int, more boolean,
               first_seq bigint, count int, created_at timestamptz, keys bytea, body bytea, buried int)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_locked bigint[];
    v_now    timestamptz;
    v_slot   "char";
    v_loser  bigint[]; -- consumers that have lost messages to the dead letters, and how many
    v_buried int[];
begin
    select array_agg(c.num) into v_locked
      from (select num from queen.consumers
             where num = any (p_consumer) order by num for no key update skip locked) c;
    -- A new statement reads the state with a new snapshot, so it sees every version
    -- written by a previous owner of the lock.
    v_now := clock_timestamp();
    select active into v_slot from queen.rotation;
    select array_agg(b.consumer), array_agg(b.buried) into v_loser, v_buried from queen.limit_deliveries(v_locked, v_now) b;

    return query
    with looked as materialized (
        select t.ord::int as target, t.pop, t.batch, t.parts, t.auto, t.lease, t.lease_text, t.consumer,
               c.lane, l.id as lane_id, coalesce(o.name, l.name) as lane_name, coalesce(q.name, oq.name) as queue_name,
               coalesce(nullif(t.seconds, 0), nullif(coalesce(q.lease_time, oq.lease_time), 0), 60) as seconds,
               st.ver, st.cursor_seq, st.retries, st.total_messages, st.total_batches, st.last_at,
               st.settled, st.past_lease, st.lease_first, st.lease_last, st.lease_at, st.lease_until,
               coalesce(q.max_deliveries, oq.max_deliveries) as most, d.deliveries, d.upto, d.times,
               g.start_seq, g.seg_first, head.next_seq, c.grp, l.skipping,
               case when l.num is null then 5
                    when c.num = any (v_locked) is not true then 1
                    when coalesce(q.by_message, oq.by_message) or st.taken_seq is not null then 8
                    when st.lease_until > v_now then 2
                    when head.next_seq is null or head.next_seq <= st.cursor_seq + 1 then 3
                    when st.retry_at > v_now then 4
                    when q.window_buffer > 0
                     and head.created_at > v_now - q.window_buffer * interval '1 second' then 4
                    when g.start_seq is null then 3
                    when q.delayed_processing > 0
                     and g.created_at > v_now - q.delayed_processing * interval '1 second' then 4
                    else 0 end::int2 as status,
               case when st.lease_until > v_now then st.lease_until
                    when st.retry_at > v_now then st.retry_at
                    when q.window_buffer > 0
                     and head.created_at > v_now - q.window_buffer * interval '1 second'
                    then head.created_at + q.window_buffer * interval '1 second'
                    when q.delayed_processing > 0
                    then g.created_at + q.delayed_processing * interval '1 second' end as until,
               f.start_seq is not null and g.start_seq is null as passed,
               case when q.delayed_processing > 0
                    then v_now - q.delayed_processing * interval '1 second' end as visible
          from unnest(p_pop, p_consumer, p_batch, p_parts, p_auto, p_lease, p_lease_text, p_seconds)
               with ordinality t(pop, consumer, batch, parts, auto, lease, lease_text, seconds, ord)
          left join queen.consumers c on c.num = t.consumer
          left join queen.lanes l on l.num = c.lane
          left join queen.queues q on q.id = l.queue_id
          -- A retry lane has the names and the lease time of its partition, and no option that delays delivery.
          left join queen.lanes o on o.num = l.origin
          left join queen.queues oq on oq.id = l.origin_queue
          left join lateral (
               (select a.ver, a.cursor_seq, a.retries, a.total_messages, a.total_batches, a.last_at,
                       a.lease_until, a.retry_at, a.settled, a.past_lease,
                       a.lease_first, a.lease_last, a.lease_at, a.expired, a.suspects_to, a.suspect_times, a.taken_seq
                  from queen.consumer_states_a a where a.consumer = c.num order by a.ver desc limit 1)
               union all
               (select b.ver, b.cursor_seq, b.retries, b.total_messages, b.total_batches, b.last_at,
                       b.lease_until, b.retry_at, b.settled, b.past_lease,
                       b.lease_first, b.lease_last, b.lease_at, b.expired, b.suspects_to, b.suspect_times, b.taken_seq
                  from queen.consumer_states_b b where b.consumer = c.num order by b.ver desc limit 1)
               order by ver desc limit 1) st on true
          left join lateral (
               select s.first_seq + s.count as next_seq, s.created_at from queen.segments s
                where s.lane = c.lane order by s.first_seq desc limit 1) head on true
          -- Expired messages are not delivered, whether or not a sweep has removed them yet.
          left join lateral (
               select v_now - least(case when q.ttl_acts then q.ttl end,
                                    case when q.retention_enabled then nullif(q.retention_seconds, 0) end,
                                    nullif(q.max_wait_time_seconds, 0)) * interval '1 second' as at) cutoff on true
          -- The segment that contains cursor + 1, or the first usable one after it.
          left join lateral (
               select s.first_seq, s.count, s.created_at from queen.segments s
                where s.lane = c.lane and s.first_seq <= st.cursor_seq + 1
                order by s.first_seq desc limit 1) here on true
          left join lateral (
               select st.cursor_seq + 1 as start_seq, here.created_at, here.first_seq as seg_first
                where here.first_seq + here.count > st.cursor_seq + 1
                  and (cutoff.at is null or here.created_at >= cutoff.at)
                union all
               (select s.first_seq, s.created_at, s.first_seq from queen.segments s
                 where s.lane = c.lane and s.first_seq > st.cursor_seq + 1 and s.count > 0
                   and (here.first_seq + here.count > st.cursor_seq + 1
                        and (cutoff.at is null or here.created_at >= cutoff.at)) is not true
                   and (cutoff.at is null or s.created_at >= cutoff.at)
                 order by s.first_seq limit 1)
                limit 1) f on true
          -- From there, the first message that this group does not skip.
          left join lateral (
               select f.start_seq, f.created_at, f.seg_first where not l.skipping and st.settled is null
                union all
               (select n.seq, s.created_at, s.first_seq
                  from (select queen.next_unskipped(c.lane, c.grp, f.start_seq, st.settled) as seq) n
                  join queen.segments s on s.lane = c.lane and s.first_seq <= n.seq
                 where (l.skipping or st.settled is not null) and n.seq < head.next_seq
                 order by s.first_seq desc limit 1)) g on true
          left join lateral queen.suspicion(g.start_seq, st.lease_first, st.lease_last, st.expired, st.suspects_to, st.suspect_times) d
            on coalesce(q.max_deliveries, oq.max_deliveries) > 0 and (st.lease_first is not null or st.suspects_to is not null)
    ), offered as materialized (
        select k.*, case when k.status <> 0 then 0
                         when k.visible is null then least(k.batch, k.next_seq - k.start_seq)
                         else least(k.batch, (select max(s.first_seq + s.count) from queen.segments s
                                               where s.lane = k.lane and s.first_seq < k.start_seq + k.batch
                                                 and s.first_seq > k.start_seq - 1024
                                                 and s.created_at <= k.visible) - k.start_seq) end as seen
          from looked k
    ), unskipped as (
        -- A batch ends before a skipped message, so that no lease ever contains one.
        select e.*, case when (e.skipping or e.settled is not null) and e.seen > 0
                         then least(e.seen, (select min(lower(r)) from unnest(e.settled) r where lower(r) > e.start_seq) - e.start_seq,
                                    (select min(n.seq) from unnest(array['', e.grp]) g(name)
                                              cross join lateral (
                                                   select p.first_seq as seq from queen.skips p
                                                    where p.lane = e.lane and p.grp = g.name and p.first_seq > e.start_seq
                                                    order by p.first_seq limit 1) n) - e.start_seq)
                         else e.seen end as avail
          from offered e
    ), shared as (
        select o.*,
               sum(o.avail) over before_me as taken_before,
               count(*) filter (where o.avail > 0) over before_me as parts_before
          from unskipped o
        window before_me as (partition by o.pop order by o.target
                             rows between unbounded preceding and 1 preceding)
    ), settled as (
        select h.*,
               case when h.avail > 0 and coalesce(h.parts_before, 0) < h.parts
                    then least(h.avail, greatest(h.batch - coalesce(h.taken_before, 0), 0),
                               -- Half of the deliveries have expired: one of these messages may crash its consumer.
                               case when not h.auto and h.times >= (h.most + 1) / 2 then 1 end)::int else 0 end as take
          from shared h
    ), written as (
        insert into queen.consumer_states
               (consumer, ver, cursor_seq, lease_first, lease_last, total_messages, total_batches,
                last_at, lease_at, lease_until, batch_size, retries, slot, lease, lease_text,
                settled, past_lease, expired, suspects_to, suspect_times)
        select d.consumer, d.ver + 1,
               case when d.auto then p.cursor_seq else d.start_seq - 1 end,
               case when not d.auto then d.start_seq end,
               case when not d.auto then d.start_seq + d.take - 1 end,
               d.total_messages + case when d.auto then d.take else 0 end,
               d.total_batches + case when d.auto then 1 else 0 end,
               v_now,
               case when not d.auto then v_now end,
               case when not d.auto then v_now + d.seconds * interval '1 second' end,
               case when d.auto then 0 else d.take end,
               case when d.auto then 0 else d.retries end,
               v_slot,
               case when not d.auto then d.lease end,
               case when not d.auto then d.lease_text end,
               p.settled, d.past_lease,
               case when not d.auto then nullif(d.deliveries, 0) end, d.upto, d.times
          from settled d
          cross join lateral queen.past_settled(case when d.auto then d.start_seq + d.take - 1 else d.start_seq - 1 end, d.settled) p
         where d.take > 0
         union all
        -- Only skipped messages up to the end: move the cursor past them.
        select d.consumer, d.ver + 1, d.next_seq - 1, null, null, d.total_messages, d.total_batches, d.last_at,
               null, null, 0, 0, v_slot, null, null, null, d.past_lease, null, null, null
          from settled d
         where d.status = 3 and d.passed
    ), expired as (
        select queen.note_expired(d.lane, d.grp, d.lease_first, d.lease_last, d.lease_at, d.lease_until)
          from settled d where d.take > 0 and d.lease_first is not null
    )
    select d.target, case when d.status = 0 and d.take = 0 then 6::int2 else d.status end,
           case when d.take = 0 then (extract(epoch from d.until - v_now) * 1000000)::bigint
                when not d.auto then d.seconds * 1000000::bigint end,
           d.lane, d.lane_id, d.lane_name::text, d.queue_name::text, d.retries, d.start_seq, d.take,
           d.next_seq > d.start_seq + d.take,
           s.first_seq, s.count, s.created_at, s.keys, s.body,
           (select b.n from unnest(v_loser, v_buried) b(consumer, n) where b.consumer = d.consumer)
      from settled d
      cross join (select count(*) from expired) noted -- a query that is not read does not run
      left join lateral (
           select * from queen.segments s
            where d.take > 0 and s.lane = d.lane
              and s.first_seq >= d.seg_first and s.first_seq < d.start_seq + d.take
            order by s.first_seq) s on true
     order by d.target, s.first_seq;
end
$$;
