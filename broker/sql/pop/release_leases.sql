-- queen.release_leases: give back what was leased for a client that has gone.
--
-- needs: latest_state, notify_lanes
-- called by  broker/src/broker/settle/lease.c (call "release")
-- in         leases
-- out        the consumers that are free now.  Cursor, retry counter and time of last use stay.  A lease of
--            which something was acknowledged already is left to its holder.
-- locks      consumers in num order
create or replace function queen.release_leases(p_lease uuid[])
returns table (consumer bigint, lane bigint, queue_name text)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_consumer bigint[];
begin
    select array_agg(c.num) into v_consumer
      from (select num from queen.consumers
             where num = any (array(
                   select a.consumer from queen.consumer_states_a a where a.lease = any (p_lease)
                    union select b.consumer from queen.consumer_states_b b where b.lease = any (p_lease)))
             order by num for no key update) c;
    return query
    with freed as (
        insert into queen.consumer_states as n
               (consumer, ver, cursor_seq, total_messages, total_batches, last_at, retry_at, retries, slot)
        select st.consumer, st.ver + 1, st.cursor_seq, st.total_messages, st.total_batches, st.last_at,
               st.retry_at, st.retries, r.active
          from unnest(v_consumer) u(consumer)
          cross join lateral queen.latest_state(u.consumer) st
          cross join queen.rotation r
         where st.lease = any (p_lease) and st.acked = 0
        returning n.consumer)
    select f.consumer, c.lane, q.name::text
      from freed f
      cross join lateral (select c.lane from queen.consumers c where c.num = f.consumer offset 0) c
      cross join lateral (select l.queue_id, l.origin_queue from queen.lanes l where l.num = c.lane offset 0) l
      cross join lateral (select q.name from queen.queues q where q.id = coalesce(l.origin_queue, l.queue_id) offset 0) q;
    if v_consumer is not null then -- other brokers may have somebody waiting for it
        perform queen.notify_lanes(0, array(select c.lane from queen.consumers c where c.num = any (v_consumer)));
    end if;
end
$$;
