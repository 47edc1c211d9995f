-- queen.take_in_order: deliver messages of a partition again that were delivered and not settled, in their order.
--
-- needs: newest_hold, next_unskipped
-- called by  queen.claim_work, for queues with ordering "partition" and settlement "message", when nothing is leased
-- in         st: the state of the consumer, which is locked; p_lane, p_group, p_skipping: of its partition; p_oldest: messages before it
--            were removed or are too old; p_most: deliveries of a message (0: no limit); p_want: messages wanted; p_slot: of new rows
-- out        runs of messages to deliver: first, n, tries (deliveries before), failed (how many of these have failed); dead: messages that
--            were delivered too often; dropped: number of messages that are not delivered any more; waits_until: the next message was given
--            back for later, so neither it nor a later one is delivered before; alone: no later message is delivered, because one of these
--            may crash its consumer. Such a message, of which half of the deliveries have expired, is delivered without others
-- effects    ends the holds of all these messages
create or replace function queen.take_in_order(
    st queen.consumer_states, p_lane bigint, p_group text, p_skipping boolean, p_oldest bigint, p_most int, p_now timestamptz,
    p_want bigint, p_slot "char",
    out first bigint[], out n int[], out tries int[], out failed int[], out dead bigint[], out dropped int, out waits_until timestamptz,
    out alone boolean)
language plpgsql
as $$
declare
    m       record;  -- a message and its hold
    v_want  bigint := p_want;
    v_last  int := 0;
    v_suspect boolean;
    v_pos   int;
    h       queen.holds;
    e       record;  -- a hold, and places in it
    e_first bigint[] := '{}'; -- one element per message that leaves its hold
    e_hold  bigint[] := '{}';
    e_pos   int[] := '{}';
begin
    first := '{}'; n := '{}'; tries := '{}'; failed := '{}'; dead := '{}'; dropped := 0; alone := false;
    for m in
        select x.first_seq + b.pos as seq, x.first_seq, x.hold, b.pos, x.until, x.deliveries, x.retries
          from (select distinct a.first_seq, a.hold from queen.holds_a a
                 where a.consumer = st.consumer and a.first_seq >= st.walk_seq and a.hold >= st.holds_from and a.until is not null
                 union
                select b.first_seq, b.hold from queen.holds_b b
                 where b.consumer = st.consumer and b.first_seq >= st.walk_seq and b.hold >= st.holds_from and b.until is not null) k
         cross join lateral queen.newest_hold(st.consumer, k.first_seq, k.hold) x
         cross join lateral generate_series(0, x.count - 1) b(pos)
         where x.until is not null and (x.done is null or get_bit(x.done, b.pos) = 0)
         order by 1
    loop
        exit when v_want <= 0 or alone;
        if m.until > p_now then
            waits_until := m.until;
            exit;
        end if;
        v_suspect := p_most > 1 and m.deliveries >= (p_most + 1) / 2 and m.deliveries < p_most;
        if v_suspect and v_last > 0 then
            alone := true;
            exit;
        end if;
        e_first := e_first || m.first_seq;
        e_hold := e_hold || m.hold;
        e_pos := e_pos || m.pos;
        if m.seq < coalesce(p_oldest, m.seq) or p_skipping and queen.next_unskipped(p_lane, p_group, m.seq) > m.seq then
            dropped := dropped + 1;
        elsif p_most > 0 and m.deliveries >= p_most then
            dead := dead || m.seq;
        else
            if v_last > 0 and first[v_last] + n[v_last] = m.seq and tries[v_last] = m.deliveries and failed[v_last] = m.retries then
                n[v_last] := n[v_last] + 1;
            else
                v_last := v_last + 1;
                first[v_last] := m.seq; n[v_last] := 1; tries[v_last] := m.deliveries; failed[v_last] := m.retries;
            end if;
            v_want := v_want - 1;
            alone := v_suspect;
        end if;
    end loop;
    for e in
        select k.first_seq, k.hold, array_agg(k.pos) as pos from unnest(e_first, e_hold, e_pos) k(first_seq, hold, pos) group by 1, 2
    loop
        select * into h from queen.newest_hold(st.consumer, e.first_seq, e.hold);
        h.done := coalesce(h.done, decode(repeat('00', (h.count + 7) / 8), 'hex'));
        foreach v_pos in array e.pos loop
            h.done := set_bit(h.done, v_pos, 1);
        end loop;
        insert into queen.holds (consumer, first_seq, hold, ver, count, deliveries, retries, slot, at, until, lease, done)
        values (h.consumer, h.first_seq, h.hold, h.ver + 1, h.count, h.deliveries, h.retries, p_slot, h.at,
                case when bit_count(h.done) < h.count then h.until end, h.lease, h.done);
    end loop;
end
$$;
