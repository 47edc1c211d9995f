-- queen.finish: complete whole batches. This is the fast path of queen.settle.
--
-- The broker that granted a lease remembers a fingerprint of its messages. When an acknowledgement completes exactly those
-- messages, PostgreSQL need not look at them again: the state of the consumer is enough to check the lease.
--
-- called by  broker/src/broker/settle/ack.c (call "finish")
-- in         p_origin: the calling process, for the change feed. One element per batch: p_consumer, its p_lane, p_lease;
--            p_ver: an earlier version of the consumer's state (a hint, see queen.claim); p_more: messages are pending after it
-- out        the consumers whose batch was completed, in the order given. The others need queen.settle: the lease
--            has ended, deliveries have failed before, a part of the batch was acknowledged before, the lane has options
--            (messages may have been removed under the lease), or another transaction has locked the consumer
-- locks      consumers in num order, skipping those that others have locked
create or replace function queen.finish(
    p_origin int, p_consumer bigint[], p_lane bigint[], p_ver bigint[], p_lease uuid[], p_more boolean[])
returns table (consumer bigint)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_locked bigint[]; -- by this call
    v_now  timestamptz;
    v_slot "char";
begin
    -- Lock first, then read: see queen.claim.
    select array_agg(c.num) into v_locked
      from (select num from queen.consumers
             where num = any (p_consumer) order by num for no key update skip locked) c;
    v_now := clock_timestamp();
    select r.active into v_slot from queen.rotation r;

    return query
    insert into queen.consumer_states
           (consumer, ver, cursor_seq, total_messages, total_batches, last_at, slot, past_lease)
    select u.consumer, st.ver + 1, greatest(st.cursor_seq, st.lease_last), st.total_messages + st.batch_size,
           st.total_batches + 1, v_now, v_slot, st.past_lease
      from unnest(p_consumer, p_lane, p_ver, p_lease) u(consumer, lane, ver, lease)
      -- Not a join: a plan made when there was one lane would scan all lanes and return rows in their order.
      cross join lateral (select l.careful from queen.lanes l where l.num = u.lane offset 0) l
      cross join lateral (
           (select a.ver, a.cursor_seq, a.lease_last, a.total_messages, a.total_batches, a.batch_size, a.acked,
                   a.lease, a.lease_until, a.retries, a.settled, a.past_lease, a.suspects_to
              from queen.consumer_states_a a where a.consumer = u.consumer and a.ver >= u.ver order by a.ver desc limit 1)
           union all
           (select b.ver, b.cursor_seq, b.lease_last, b.total_messages, b.total_batches, b.batch_size, b.acked,
                   b.lease, b.lease_until, b.retries, b.settled, b.past_lease, b.suspects_to
              from queen.consumer_states_b b where b.consumer = u.consumer and b.ver >= u.ver order by b.ver desc limit 1)
           order by ver desc limit 1) st
     where u.consumer = any (v_locked) and not l.careful and st.lease = u.lease and st.lease_until > v_now and st.acked = 0 and st.retries = 0
       and st.settled is null and st.suspects_to is null
    returning consumer_states.consumer;

    if found and true = any (p_more) then
        perform queen.notify_lanes(p_origin, array(select u.lane from unnest(p_lane, p_more) u(lane, more) where u.more));
    end if;
end
$$;
