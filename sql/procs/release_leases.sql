-- queen.release_leases: give back what was leased for a client that has gone.
--
-- needs: latest_state
-- called by  src/broker/pop.c (call "release")
-- in         pairs of consumer and lease
-- out        the consumers that are free now.  Cursor, retry counter and time of last use stay.
-- locks      consumers in num order
create or replace function queen.release_leases(p_consumer bigint[], p_lease uuid[])
returns table (consumer bigint)
language plpgsql
as $$
#variable_conflict use_column
begin
    perform c.num from queen.consumers c where c.num = any (p_consumer) order by c.num for no key update;
    return query
    insert into queen.consumer_states
           (consumer, ver, cursor_seq, total_messages, total_batches, last_at, retry_at, retries, slot)
    select st.consumer, st.ver + 1, st.cursor_seq, st.total_messages, st.total_batches, st.last_at,
           st.retry_at, st.retries, r.active
      from unnest(p_consumer, p_lease) u(consumer, lease)
      cross join lateral queen.latest_state(u.consumer) st
      cross join queen.rotation r
     where st.lease = u.lease and st.acked = 0
    returning consumer_states.consumer;
end
$$;
