-- queen.claim: lease lanes for pops and return their messages. This is the fast path.
--
-- For pops that want one lane each, of queues without options that restrict delivery. Sequence numbers have no gaps, so cursor
-- and batch size determine the segments, and neither the end of the lane nor its queue is read. Cases that this
-- function cannot decide are left to queen.claim_careful.
--
-- called by  broker/src/broker/pop/claim.c (call "claim")
-- in         one element per pop: p_consumer, p_batch; p_auto: acknowledge on delivery; p_lease: its lease.
--            Hints, 0 if unknown: p_ver, an earlier version of the consumer's state; p_near, the start of a segment that it
--            received. A backward probe without a lower bound reads a whole index page first (7 us
--            instead of 1 us), so hints are worth passing. A hint need not be recent or even
--            right: the server may have lost the commits that it came from.
-- out        as queen.claim_careful, and status 7: call queen.claim_careful, now and later (the queue has options), 9: this once (a lease
--            has expired, or messages were settled one by one).
--            more: the batch is full, so messages may be left
-- numbers:   status claim_status
-- locks      consumers in num order, skipping those that others have locked
create or replace function queen.claim(
    p_consumer bigint[], p_ver bigint[], p_near bigint[], p_batch int[], p_auto boolean[], p_lease uuid[])
returns table (target int, status int2, wait_us bigint, lane bigint, lane_id uuid, ver bigint,
               retries int, start_seq bigint, take int, more boolean,
               first_seq bigint, count int, created_at timestamptz, keys bytea, body bytea)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_locked bigint[];
    v_now    timestamptz;
    v_slot   "char";
begin
    select array_agg(c.num) into v_locked
      from (select num from queen.consumers
             where num = any (p_consumer) order by num for no key update skip locked) c;
    -- A new statement reads the state with a new snapshot, so it sees every version
    -- written by a previous owner of the lock.
    v_now := clock_timestamp();
    select active into v_slot from queen.rotation;

    return query
    with looked as materialized (
        select t.ord::int as target, t.consumer, t.batch, t.auto, t.lease, c.lane, l.id as lane_id,
               l.lease_seconds, st.ver, st.cursor_seq, st.retries, st.total_messages, st.total_batches, st.past_lease,
               k.status, greatest(st.lease_until, st.retry_at) as until,
               s.first_seq, s.count, s.created_at, s.keys, s.body, s.nth,
               least(t.batch, s.next_seq - st.cursor_seq - 1)::int as take
          from unnest(p_consumer, p_ver, p_near, p_batch, p_auto, p_lease)
               with ordinality t(consumer, ver, near, batch, auto, lease, ord)
          left join queen.consumers c on c.num = t.consumer
          left join queen.lanes l on l.num = c.lane
          -- If either branch finds a version, it is the newest. The second runs only if the hint is wrong.
          left join lateral (
              (select * from (
                  (select a.ver, a.cursor_seq, a.retries, a.total_messages, a.total_batches, a.lease_until, a.retry_at, a.settled, a.past_lease,
                          a.lease_first, a.suspects_to, a.taken_seq
                     from queen.consumer_states_a a where a.consumer = c.num and a.ver >= t.ver order by a.ver desc limit 1)
                   union all
                  (select b.ver, b.cursor_seq, b.retries, b.total_messages, b.total_batches, b.lease_until, b.retry_at, b.settled, b.past_lease,
                          b.lease_first, b.suspects_to, b.taken_seq
                     from queen.consumer_states_b b where b.consumer = c.num and b.ver >= t.ver order by b.ver desc limit 1)
                   order by ver desc limit 1) hinted)
               union all
              (select * from (
                  (select a.ver, a.cursor_seq, a.retries, a.total_messages, a.total_batches, a.lease_until, a.retry_at, a.settled, a.past_lease,
                          a.lease_first, a.suspects_to, a.taken_seq
                     from queen.consumer_states_a a where a.consumer = c.num and t.ver > 0 order by a.ver desc limit 1)
                   union all
                  (select b.ver, b.cursor_seq, b.retries, b.total_messages, b.total_batches, b.lease_until, b.retry_at, b.settled, b.past_lease,
                          b.lease_first, b.suspects_to, b.taken_seq
                     from queen.consumer_states_b b where b.consumer = c.num and t.ver > 0 order by b.ver desc limit 1)
                   order by ver desc limit 1) unhinted)
               limit 1) st on true
          cross join lateral (
               select case when l.num is null then 5
                           when c.num = any (v_locked) is not true then 1
                           when st.lease_until > v_now then 2
                           when st.retry_at > v_now then 4
                           when l.careful or st.taken_seq is not null then 7
                           when st.settled is not null or st.lease_first is not null or st.suspects_to is not null then 9
                           else 0 end::int2 as status) k
          left join lateral (
               select s.first_seq, s.count, s.created_at, s.keys, s.body,
                      row_number() over (order by s.first_seq) as nth,
                      max(s.first_seq + s.count) over () as next_seq
                 from queen.segments s
                where k.status = 0 and s.lane = c.lane and s.first_seq <= st.cursor_seq + t.batch
                  and s.first_seq >= case when t.near between 1 and st.cursor_seq + 1 then t.near
                                          else coalesce((select p.first_seq from queen.segments p
                                                          where p.lane = c.lane and p.first_seq <= st.cursor_seq + 1
                                                          order by p.first_seq desc limit 1), 0) end
                  and s.first_seq + s.count > st.cursor_seq + 1) s on true
    ), written as (
        insert into queen.consumer_states
               (consumer, ver, cursor_seq, lease_first, lease_last, total_messages, total_batches,
                last_at, lease_at, lease_until, batch_size, retries, slot, lease, past_lease)
        select d.consumer, d.ver + 1,
               case when d.auto then d.cursor_seq + d.take else d.cursor_seq end,
               case when not d.auto then d.cursor_seq + 1 end,
               case when not d.auto then d.cursor_seq + d.take end,
               d.total_messages + case when d.auto then d.take else 0 end,
               d.total_batches + case when d.auto then 1 else 0 end,
               v_now,
               case when not d.auto then v_now end,
               case when not d.auto then v_now + d.lease_seconds * interval '1 second' end,
               case when d.auto then 0 else d.take end,
               case when d.auto then 0 else d.retries end,
               v_slot,
               case when not d.auto then d.lease end,
               d.past_lease
          from looked d
         where d.nth = 1 and d.first_seq <= d.cursor_seq + 1
    )
    -- No segment at the expected sequence number: retention may have removed the front of the lane.
    select d.target,
           case when d.status <> 0 or d.take is not null and d.nth > 1 then d.status
                when d.first_seq <= d.cursor_seq + 1 then 0
                -- Without p_near, which may be wrong. A segment has at most 256 messages.
                when d.first_seq is null
                 and (select s.first_seq + s.count from queen.segments s
                       where s.lane = d.lane and s.first_seq > d.cursor_seq - 255
                       order by s.first_seq desc limit 1) > d.cursor_seq + 1 is not true then 3
                else 7 end::int2,
           case when d.status in (2, 4) then (extract(epoch from d.until - v_now) * 1000000)::bigint
                when d.status = 0 and not d.auto then d.lease_seconds * 1000000::bigint end,
           d.lane, d.lane_id, d.ver, d.retries, d.cursor_seq + 1, d.take, d.take = d.batch,
           d.first_seq, d.count, d.created_at, d.keys, d.body
      from looked d
     order by d.target, d.first_seq;
end
$$;
