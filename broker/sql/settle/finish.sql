-- queen.finish: whole batches were completed: the hot way of queen.settle.
--
-- The broker that gave out a lease remembers a fingerprint of what was under it.  When an acknowledgement names exactly those
-- messages as completed, nobody has to look at them again: the state alone says whether the lease still holds.
--
-- called by  broker/src/broker/settle/ack.c (call "finish")
-- in         p_origin: who asks, for the change feed.  One element per batch: p_consumer, its p_lane, p_lease;
--            p_ver: a version the consumer has had (a hint, see queen.claim); p_more: something is pending behind it
-- out        the consumers whose batch was finished, in the order given; the others need queen.settle: the lease
--            has ended, deliveries have failed before, part of the batch was acknowledged before, the lane has options (messages may
--            have gone from under the lease), or another transaction has locked the consumer
-- locks      consumers in num order, skipping those locked by others
create or replace function queen.finish(
    p_origin int, p_consumer bigint[], p_lane bigint[], p_ver bigint[], p_lease uuid[], p_more boolean[])
returns table (consumer bigint)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_locked bigint[]; -- by us
    v_now  timestamptz;
    v_slot "char";
begin
    -- Locked first, read afterwards: see queen.claim.
    select array_agg(c.num) into v_locked
      from (select num from queen.consumers
             where num = any (p_consumer) order by num for no key update skip locked) c;
    v_now := clock_timestamp();
    select r.active into v_slot from queen.rotation r;

    return query
    insert into queen.consumer_states
           (consumer, ver, cursor_seq, total_messages, total_batches, last_at, slot)
    select u.consumer, st.ver + 1, greatest(st.cursor_seq, st.lease_last), st.total_messages + st.batch_size,
           st.total_batches + 1, v_now, v_slot
      from unnest(p_consumer, p_lane, p_ver, p_lease) u(consumer, lane, ver, lease)
      -- Not a join: one planned while there was a single lane would walk all lanes, and give their order to the answer.
      cross join lateral (select l.careful from queen.lanes l where l.num = u.lane offset 0) l
      cross join lateral (
           (select a.ver, a.cursor_seq, a.lease_last, a.total_messages, a.total_batches, a.batch_size, a.acked,
                   a.lease, a.lease_until, a.retries
              from queen.consumer_states_a a where a.consumer = u.consumer and a.ver >= u.ver order by a.ver desc limit 1)
           union all
           (select b.ver, b.cursor_seq, b.lease_last, b.total_messages, b.total_batches, b.batch_size, b.acked,
                   b.lease, b.lease_until, b.retries
              from queen.consumer_states_b b where b.consumer = u.consumer and b.ver >= u.ver order by b.ver desc limit 1)
           order by ver desc limit 1) st
     where u.consumer = any (v_locked) and not l.careful and st.lease = u.lease and st.lease_until > v_now and st.acked = 0 and st.retries = 0
    returning consumer_states.consumer;

    if found and true = any (p_more) then
        perform queen.notify_lanes(p_origin, array(select u.lane from unnest(p_lane, p_more) u(lane, more) where u.more));
    end if;
end
$$;
