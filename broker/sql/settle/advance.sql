-- queen.advance: acknowledge all messages of a partition up to one message, or dead-letter that message. This is how a stream cycle
-- acknowledges.
--
-- numbers:   why ack_why
-- needs: ensure_consumers, find_message, fail_messages, settled_before, past_settled, note_completed, trim_retry_lane, notify_lanes
-- called by  queen.stream_cycle
-- in         p_key of the message; p_lease null: none given, which is refused on a partition that has an owner;
--            p_count: number of messages it stands for; p_dead: dead-letter this message alone, and end the lease under which it was
--            delivered: those before it that are not settled are delivered again; p_release false: keep the lease until it expires
-- out        why 0 ok, 1 message not found, 2 invalid, expired or missing lease, 4 it waits for its retry, 5 not delivered under p_lease,
--            6 p_dead, but it was completed or skipped before; released; more: messages are pending after it
-- locks      lanes whose consumer must be created; the consumer
--
-- Records the history of messages that failed before and trims retry lanes, as queen.settle does.
-- If the lease expires afterwards, that is not a failed delivery: the remaining messages are delivered again with an unchanged retry count.
create or replace function queen.advance(
    p_origin int, p_lane bigint, p_group text, p_key uuid, p_lease uuid, p_count int, p_dead boolean,
    p_error text, p_release boolean)
returns table (why int2, released boolean, consumer bigint, more boolean)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_now timestamptz;
    v_seq bigint;
    v_leased  boolean;        -- the message was delivered under the lease, which may have expired
    v_cursor  bigint;         -- after this call
    v_settled int8multirange; -- likewise
    v_fate    "char";         -- of a message that was settled before: see queen.settled_before
    l     record; -- origin (null unless it is a retry lane) and the retry policy of the queue
    st    queen.consumer_states%rowtype;
begin
    why := 1;
    released := false;
    select e.consumer into consumer from queen.ensure_consumers(array[p_lane], array[p_group]) e;
    if consumer is not null then
        -- Lock first, then read: see queen.claim.
        perform from queen.consumers c where c.num = consumer for no key update;
        v_seq := queen.find_message(p_lane, p_key);
    end if;
    if v_seq is null then
        return next;
        return;
    end if;
    v_now := clock_timestamp();
    select * into st from (
        (select * from queen.consumer_states_a a where a.consumer = advance.consumer order by ver desc limit 1)
        union all
        (select * from queen.consumer_states_b b where b.consumer = advance.consumer order by ver desc limit 1)
    ) slots order by ver desc limit 1;
    if st.ver is null then
        raise exception 'consumer % has no state', consumer using errcode = '40001';
    end if;
    select k.origin, q.retry_policy, q.by_message into l
      from queen.lanes k left join queen.queues q on q.id = coalesce(k.origin_queue, k.queue_id) where k.num = p_lane;
    if l.by_message or st.taken_seq is not null then
        raise exception 'the partition belongs to a work queue (ordering "none" or settlement "message"); a stream needs an ordered queue' using errcode = 'QN001';
    end if;
    if (case when p_lease is not null then (st.lease = p_lease and st.lease_until > v_now) is not true
            else exists (select from queen.owners o
                          where o.lane = coalesce(l.origin, p_lane) and o.grp = p_group and o.owner is not null
                            and o.expires_at > v_now) end) then
        why := 2;
        return next;
        return;
    end if;

    why := 0;
    v_leased := coalesce(st.lease is not null and v_seq between st.lease_first and st.lease_last, false);
    if not v_leased and (v_seq <= st.cursor_seq or p_dead and coalesce(st.settled @> v_seq, false))
       or p_dead and v_leased and (st.settled @> v_seq or get_bit(st.acked_mask, (v_seq - st.lease_first)::int) = 1) then
        -- Settled before: change nothing, and do not release a lease of other messages.
        select s.outcome into v_fate from queen.settled_before(p_lane, l.origin, p_group, array[v_seq]) s;
        why := case when v_fate = 'r' then 4 when p_dead and v_fate is null then 6 else 0 end;
        released := why = 0 and coalesce(st.lease_until <= v_now, true);
        return next;
        return;
    end if;
    if not v_leased and p_lease is not null then
        why := 5;
        return next;
        return;
    end if;
    -- A lease ends by a message that was delivered under it, or when the cursor has passed all of them.
    released := (p_release or p_dead)
                and (v_leased or coalesce(st.lease_until <= v_now, true) or not p_dead and v_seq > st.lease_last);
    if p_dead then
        perform queen.fail_messages(p_lane, l.origin, p_group, l.retry_policy, false, 0, st.lease_at, v_now, array[1], array[v_seq],
                                    array[true], array[p_error], array[null::text], array[null::text]);
        select p.cursor_seq, p.settled into v_cursor, v_settled
          from queen.past_settled(st.cursor_seq, coalesce(st.settled, '{}') + int8multirange(int8range(v_seq, v_seq, '[]'))) p;
    else
        select p.cursor_seq, p.settled into v_cursor, v_settled
          from queen.past_settled(greatest(st.cursor_seq, v_seq), st.settled) p;
    end if;
    insert into queen.consumer_states
           (consumer, ver, cursor_seq, lease_first, lease_last, total_messages, total_batches, last_at, lease_at,
            lease_until, retry_at, batch_size, acked, retries, slot, lease, lease_text, acked_mask,
            settled, past_lease, expired, suspects_to, suspect_times)
    select consumer, st.ver + 1, v_cursor,
           case when not released then st.lease_first end, case when not released then st.lease_last end,
           st.total_messages + case when p_dead then 1 else p_count end, st.total_batches + released::int, v_now,
           case when not released then st.lease_at end, case when not released then st.lease_until end,
           case when v_cursor = st.cursor_seq then st.retry_at end,
           case when released then 0 else st.batch_size end, case when released then 0 else st.acked end,
           case when v_cursor > st.cursor_seq or released and not p_dead then 0 else st.retries end, r.active,
           case when not released then st.lease end, case when not released then st.lease_text end,
           case when not released then st.acked_mask end, v_settled, st.past_lease,
           st.expired, st.suspects_to, st.suspect_times
      from queen.rotation r;
    if not p_dead and (l.origin is not null or st.retries > 0) then
        -- Includes its predecessors. A cycle has at most 10,000 messages.
        perform queen.note_completed(p_lane, l.origin, p_group,
                                     array(select generate_series(greatest(st.cursor_seq + 1, v_seq - 9999), v_seq)),
                                     st.lease_at, v_now, null);
    end if;
    if l.origin is not null then
        perform queen.trim_retry_lane(p_lane, case when released then v_cursor else least(v_cursor, st.lease_first - 1) end);
    end if;
    if released then
        select exists (select from queen.segments s
                        where s.lane = p_lane and s.first_seq > v_cursor - 256
                          and s.first_seq + s.count > v_cursor + 1) into more;
        perform queen.notify_lanes(p_origin, array[p_lane]); -- even if nothing is pending: see queen.settle
    end if;
    return next;
end
$$;
