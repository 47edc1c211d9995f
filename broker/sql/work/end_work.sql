-- queen.end_work: make the state of a consumer that of an ordered queue again.
--
-- called by  queen.claim_work, which has locked the consumer, after the option "ordering" of the queue has changed
-- in         st: the newest state, of a work queue
-- out        when its last lease ends; null: there is none, and the new state is stored. Messages that were settled out of order are not
--            delivered again; all others are delivered in order
create or replace function queen.end_work(st queen.consumer_states)
returns timestamptz
language plpgsql
as $$
declare
    v_now   timestamptz := greatest(clock_timestamp(), st.swept_at + interval '1 microsecond', st.leases_at + interval '1 microsecond');
    v_until timestamptz;
    v_open  int8multirange;
begin
    with newest as (
        select distinct on (h.first_seq, h.hold) h.*
          from (select * from queen.holds_a a where a.consumer = st.consumer and a.first_seq >= st.walk_seq and a.hold >= st.holds_from
                 union all
                select * from queen.holds_b b where b.consumer = st.consumer and b.first_seq >= st.walk_seq and b.hold >= st.holds_from) h
         order by h.first_seq, h.hold, h.ver desc)
    select max(n.until) filter (where n.lease is not null and n.until > v_now),
           range_agg(int8range(q.seq, q.seq, '[]'))
      into v_until, v_open
      from newest n
      cross join lateral generate_series(n.first_seq, n.first_seq + n.count - 1) q(seq)
     where n.until is not null and (n.done is null or get_bit(n.done, (q.seq - n.first_seq)::int) = 0);
    if v_until is null then
        insert into queen.consumer_states
               (consumer, ver, cursor_seq, total_messages, total_batches, last_at, slot, settled, past_lease)
        select st.consumer, st.ver + 1, p.cursor_seq, st.total_messages, st.total_batches, st.last_at, r.active, p.settled, st.past_lease
          from queen.rotation r
          cross join queen.past_settled(
               coalesce(lower(v_open) - 1, st.taken_seq),
               nullif(coalesce(st.settled, '{}') + int8multirange(int8range(st.cursor_seq, st.taken_seq, '(]'))
                      - coalesce(v_open, '{}'), '{}')) p;
    end if;
    return v_until;
end
$$;
