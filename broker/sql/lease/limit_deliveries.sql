-- queen.limit_deliveries: dead-letter messages that were delivered maxDeliveries times without an acknowledgement.
--
-- needs: latest_state, next_unskipped, past_settled, suspicion, note_expired, fail_messages
-- called by  queen.claim_careful, which holds the consumers
-- in         consumers whose lease, if there is one, has expired or is still active
-- out        a row per consumer that has lost messages to the dead letters, and how many
-- locks      only as queen.fail_messages
--
-- After half of the limit, messages that expired together are delivered one by one (queen.claim_careful). So a message is
-- dead-lettered only after it was delivered alone, and its neighbours are not. With a limit of 1 there is no second delivery.
create or replace function queen.limit_deliveries(p_consumer bigint[], p_now timestamptz)
returns table (consumer bigint, buried int)
language plpgsql
as $$
#variable_conflict use_column
declare
    c     record;
    st    queen.consumer_states%rowtype;
    s     record;
    v_seq bigint;
    v_seqs  bigint[]; -- messages that have reached the limit, and how often each was delivered
    v_times int[];
    v_n     int;
    v_some  bigint[]; -- those that were delivered v_n times
begin
    for c in
        select k.num, k.grp, k.lane, l.origin, q.max_deliveries, q.retry_policy
          from unnest(p_consumer) u(num)
          cross join lateral queen.latest_state(u.num) t
          cross join lateral (select k.* from queen.consumers k where k.num = u.num offset 0) k
          cross join lateral (select l.* from queen.lanes l where l.num = k.lane offset 0) l
          cross join lateral (select q.* from queen.queues q where q.id = coalesce(l.origin_queue, l.queue_id) offset 0) q
         where t.taken_seq is null -- messages of work queues are counted one by one
           and (t.lease_first is not null or t.suspects_to is not null) and coalesce(t.lease_until, p_now) <= p_now
           and q.max_deliveries > 0 and greatest(t.expired, t.suspect_times, 0) + 1 >= q.max_deliveries
    loop
        select * into st from queen.latest_state(c.num);
        buried := 0;
        v_seqs := '{}';
        v_times := '{}';
        v_seq := st.cursor_seq;
        loop
            v_seq := queen.next_unskipped(c.lane, c.grp, v_seq + 1, st.settled);
            select * into s from queen.suspicion(v_seq, st.lease_first, st.lease_last, st.expired, st.suspects_to, st.suspect_times);
            exit when s.deliveries < c.max_deliveries;
            v_seqs := v_seqs || v_seq;
            v_times := v_times || s.deliveries;
        end loop;
        continue when v_seqs = '{}';
        -- All at once: a lease may contain thousands. The first of them may have expired more often than the others.
        foreach v_n in array array(select distinct t from unnest(v_times) t order by t) loop
            v_some := array(select u.seq from unnest(v_seqs, v_times) u(seq, times) where u.times = v_n order by u.seq);
            buried := buried + (
                select count(*) from queen.fail_messages(
                    c.lane, c.origin, c.grp, c.retry_policy, false, v_n, st.lease_at, p_now,
                    array(select generate_series(1, cardinality(v_some))), v_some, array_fill(true, array[cardinality(v_some)]),
                    array_fill('delivery limit'::text, array[cardinality(v_some)]), array_fill(null::text, array[cardinality(v_some)]),
                    array_fill(null::text, array[cardinality(v_some)])));
        end loop;
        -- Those that were removed meanwhile are passed, too.
        select p.cursor_seq, p.settled into st.cursor_seq, st.settled
          from queen.past_settled(st.cursor_seq, coalesce(st.settled, '{}')
                                  + (select range_agg(int8range(u.seq, u.seq, '[]')) from unnest(v_seqs) u(seq))) p;
        continue when buried = 0;
        if st.lease_first is not null then
            perform queen.note_expired(c.lane, c.grp, st.lease_first, st.lease_last, st.lease_at, st.lease_until);
        end if;
        insert into queen.consumer_states
               (consumer, ver, cursor_seq, total_messages, total_batches, last_at, slot, settled, past_lease, suspects_to, suspect_times)
        select c.num, st.ver + 1, st.cursor_seq, st.total_messages + buried, st.total_batches, st.last_at, r.active, st.settled,
               st.past_lease, s.upto, s.times
          from queen.rotation r;
        consumer := c.num;
        return next;
    end loop;
end
$$;
