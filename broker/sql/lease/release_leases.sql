-- queen.release_leases: release the leases of a client that has disconnected.
--
-- needs: latest_state, release_work, notify_lanes
-- called by  broker/src/broker/settle/lease.c (call "release")
-- in         leases
-- out        the consumers that are free now. Cursor, retry counter and time of last use stay. A lease with
--            acknowledged messages is not released.
-- locks      consumers in num order, skipping those of other sessions; then the skipped ones, 100 ms for each, until three have failed.
--            Their leases expire by themselves, and the other consumers need not wait for that
create or replace function queen.release_leases(p_lease uuid[])
returns table (consumer bigint, lane bigint, queue_name text)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_wanted   bigint[] := array(select a.consumer from queen.consumer_states_a a where a.lease = any (p_lease)
                                  union select b.consumer from queen.consumer_states_b b where b.lease = any (p_lease)
                                  union select a.consumer from queen.holds_a a where a.lease = any (p_lease) and a.until is not null
                                  union select b.consumer from queen.holds_b b where b.lease = any (p_lease) and b.until is not null);
    v_consumer bigint[];
    v_one      bigint;
    v_left     int := 3;
    v_timeout  text := current_setting('lock_timeout');
begin
    v_consumer := array(select c.num from queen.consumers c
                         where c.num = any (v_wanted) order by c.num for no key update skip locked);
    if cardinality(v_consumer) < cardinality(v_wanted) then
        perform set_config('lock_timeout', '100ms', true);
        for v_one in select unnest(v_wanted) except select unnest(v_consumer) order by 1 loop
            begin
                perform c.num from queen.consumers c where c.num = v_one for no key update;
                v_consumer := v_consumer || v_one;
            exception when lock_not_available then
                v_left := v_left - 1;
            end;
            exit when v_left = 0;
        end loop;
        perform set_config('lock_timeout', v_timeout, true);
    end if;
    return query
    with freed as (
        insert into queen.consumer_states as n
               (consumer, ver, cursor_seq, total_messages, total_batches, last_at, retry_at, retries, slot,
                settled, past_lease, suspects_to, suspect_times)
        select st.consumer, st.ver + 1, st.cursor_seq, st.total_messages, st.total_batches, st.last_at,
               st.retry_at, st.retries, r.active, st.settled, st.past_lease, st.suspects_to, st.suspect_times
          from unnest(v_consumer) u(consumer)
          cross join lateral queen.latest_state(u.consumer) st
          cross join queen.rotation r
         where st.lease = any (p_lease) and st.acked = 0
        returning n.consumer
    ), both_kinds as (
        select f.consumer from freed f
        union all
        select w.consumer from queen.release_work(p_lease, v_consumer) w)
    select f.consumer, c.lane, q.name::text
      from both_kinds f
      cross join lateral (select c.lane from queen.consumers c where c.num = f.consumer offset 0) c
      cross join lateral (select l.queue_id, l.origin_queue from queen.lanes l where l.num = c.lane offset 0) l
      cross join lateral (select q.name from queen.queues q where q.id = coalesce(l.origin_queue, l.queue_id) offset 0) q;
    if v_consumer <> '{}' then -- other brokers may have pops that wait for it
        perform queen.notify_lanes(0, array(select c.lane from queen.consumers c where c.num = any (v_consumer)));
    end if;
end
$$;
