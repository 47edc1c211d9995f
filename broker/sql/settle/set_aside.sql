-- queen.set_aside: dead-letter delivered messages that cannot be read.
--
-- needs: drop_work, add_dead_letter, message_id, latest_state, notify_lanes
-- called by  broker/src/api/messages/pop_aside.c (call "set_aside"); queen.pop_one
-- in         p_group; one element per range of messages: p_lane, p_first, p_count; p_lease: the lease under which the messages were
--            claimed, null if the claim acknowledged them (autoAck); p_error: the error of the dead letters
-- out        the number of messages set aside
-- effects    one dead letter for each message. Under a live lease each of them counts as acknowledged, so that the lease ends
--            with the acknowledgement of its readable messages. The cursor never passes a readable message that is not yet acknowledged
-- locks      consumers in num order, then dead letters
--
-- The bytes stay in the segment. The message id is the one derived from the position, because a stored id cannot be trusted.
create or replace function queen.set_aside(
    p_group text, p_lane bigint[], p_first bigint[], p_count int[], p_lease uuid, p_error text)
returns int
language plpgsql
as $$
declare
    r       record;
    st      queen.consumer_states%rowtype;
    v_now   timestamptz;
    v_bit   int;
    v_n     int := 0;
    v_freed bigint[] := '{}';
begin
    perform c.num
       from queen.consumers c
      where c.grp = p_group and c.lane = any (p_lane)
      order by c.num for no key update;
    v_now := clock_timestamp();
    for r in
        select l.num as lane, coalesce(o.num, l.num) as shown, coalesce(o.id, l.id) as shown_id, c.num as consumer,
               array_agg(s.seq order by s.seq) as seqs
          from unnest(p_lane, p_first, p_count) u(lane, first_seq, n)
          cross join lateral generate_series(u.first_seq, u.first_seq + u.n - 1) s(seq)
          join queen.lanes l on l.num = u.lane
          left join queen.lanes o on o.num = l.origin
          left join queen.consumers c on c.lane = l.num and c.grp = p_group
         group by l.num, o.num, l.id, o.id, c.num
         order by l.num
    loop
        perform queen.add_dead_letter(queen.message_id(g.created_at, (q.seq - g.first_seq)::int, r.lane), r.shown_id, r.lane, q.seq,
                                      p_group, p_error, 0)
           from unnest(r.seqs) q(seq)
           cross join lateral (select k.first_seq, k.created_at from queen.segments k
                                where k.lane = r.lane and k.first_seq <= q.seq
                                order by k.first_seq desc limit 1) g;
        v_n := v_n + cardinality(r.seqs);
        continue when p_lease is null or r.consumer is null;
        select * into st from queen.latest_state(r.consumer);
        if st.taken_seq is not null then
            st := queen.drop_work(st, r.seqs);
            continue;
        end if;
        continue when (st.lease = p_lease and st.lease_until > v_now) is not true;
        for i in 1 .. cardinality(r.seqs) loop
            continue when r.seqs[i] not between st.lease_first and st.lease_last;
            v_bit := (r.seqs[i] - st.lease_first)::int;
            if st.acked_mask is null then
                st.acked_mask := decode(repeat('00', st.batch_size / 8 + 1), 'hex');
            end if;
            continue when v_bit >= st.batch_size or get_bit(st.acked_mask, v_bit) = 1;
            st.acked_mask := set_bit(st.acked_mask, v_bit, 1);
            st.acked := st.acked + 1;
            if r.seqs[i] = st.cursor_seq + 1 then
                st.cursor_seq := r.seqs[i];
            end if;
        end loop;
        if st.acked >= st.batch_size then
            st.cursor_seq := greatest(st.cursor_seq, st.lease_last);
            st.total_batches := st.total_batches + 1;
            st.lease := null; st.lease_text := null; st.lease_at := null; st.lease_until := null;
            st.lease_first := null; st.lease_last := null; st.retries := 0; st.retry_at := null;
            st.batch_size := 0; st.acked := 0; st.acked_mask := null;
            v_freed := v_freed || r.lane;
        end if;
        insert into queen.consumer_states
               (consumer, ver, cursor_seq, lease_first, lease_last, total_messages, total_batches,
                last_at, lease_at, lease_until, retry_at, batch_size, acked, retries, slot, lease,
                lease_text, acked_mask, settled, past_lease, expired, suspects_to, suspect_times)
        select st.consumer, st.ver + 1, st.cursor_seq, st.lease_first, st.lease_last,
               st.total_messages, st.total_batches, v_now, st.lease_at, st.lease_until, st.retry_at,
               st.batch_size, st.acked, st.retries, w.active, st.lease, st.lease_text, st.acked_mask,
               st.settled, st.past_lease, st.expired, st.suspects_to, st.suspect_times
          from queen.rotation w;
    end loop;
    if v_freed <> '{}' then
        perform queen.notify_lanes(0, v_freed);
    end if;
    return v_n;
end
$$;
