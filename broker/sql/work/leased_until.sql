-- queen.leased_until: when the last lease of a partition that settles messages one by one ends, at the latest.
--
-- needs: newest_hold
-- called by  queen.claim_work, for queues with ordering "partition"
-- in         st: the state of the consumer, which is locked
-- out        null: no message is leased
--
-- All leases are behind walk_seq, and there is one at a time, so few rows are read.
create or replace function queen.leased_until(st queen.consumer_states, p_now timestamptz)
returns timestamptz
language sql stable
as $$
    select max(n.until)
      from (select a.first_seq, a.hold from queen.holds_a a
             where a.consumer = st.consumer and a.first_seq >= st.walk_seq and a.hold >= st.holds_from and a.lease is not null and a.until > p_now
             union
            select b.first_seq, b.hold from queen.holds_b b
             where b.consumer = st.consumer and b.first_seq >= st.walk_seq and b.hold >= st.holds_from and b.lease is not null and b.until > p_now) k
      cross join lateral queen.newest_hold(st.consumer, k.first_seq, k.hold) n
     where n.lease is not null and n.until > p_now
$$;
