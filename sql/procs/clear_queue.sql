-- queen.clear_queue: DELETE /api/v1/queues/:queue/clear.
--
-- needs: forget_messages, latest_state, skipped, tell_group
-- called by  src/api/actions.c
-- in         p_args.queue; p_args.partition: only that one
-- out        200 {"success","queue","partition","deleted"}; 404: no such queue or partition
-- effects    all messages and what refers to them go, their retries too.  Partitions, cursors and the numbering stay (an emptied lane keeps a marker,
--            see queen.sweep); leases end, there is nothing left to acknowledge
-- locks      lanes in num order, then their consumers in num order
create or replace function queen.clear_queue(p_args jsonb)
returns table (status int, answer json)
language plpgsql
as $$
declare
    v_lanes   bigint[];
    v_lane    bigint;
    v_last    record;
    v_some    bigint;
    v_deleted bigint := 0;
    v_missing text;
begin
    if not exists (select from queen.queues q where q.name = p_args ->> 'queue') then
        v_missing := 'Queue not found';
    end if;
    select array_agg(l.num) into v_lanes
      from (select l.num from queen.lanes l join queen.queues q on q.id = l.queue_id
             where q.name = p_args ->> 'queue' and (p_args ->> 'partition' is null or l.name = p_args ->> 'partition')
             order by l.num for update of l) l;
    if v_missing is null and v_lanes is null and p_args ->> 'partition' is not null then
        v_missing := 'Partition not found';
    end if;
    if v_missing is not null then
        status := 404;
        answer := json_build_object('success', false, 'error', v_missing);
        return next;
        return;
    end if;

    perform c.num from queen.consumers c where c.lane = any (v_lanes) order by c.num for no key update;
    foreach v_lane in array coalesce(v_lanes, '{}') loop
        select s.first_seq + greatest(s.count, 1) - 1 as seq, s.created_at into v_last
          from queen.segments s where s.lane = v_lane order by s.first_seq desc limit 1;
        continue when not found;
        if (select l.skipping from queen.lanes l where l.num = v_lane) then
            v_deleted := v_deleted - queen.skipped(v_lane, '', 0, v_last.seq);
        end if;
        with gone as (delete from queen.segments s where s.lane = v_lane returning s.count)
        select coalesce(sum(g.count), 0) into v_some from gone g;
        v_deleted := v_deleted + v_some;
        insert into queen.segments (lane, first_seq, created_at, count, keys, body)
        values (v_lane, v_last.seq, v_last.created_at, 0, '', '\x01');
        delete from queen.message_keys k where k.lane = v_lane and k.seq > 0; -- what waits is not in the queue yet
        perform queen.forget_messages(v_lane, v_last.seq + 1);
    end loop;
    delete from queen.attempts a where a.lane = any (v_lanes);
    delete from queen.lanes r where r.origin = any (v_lanes); -- with all that waits there
    insert into queen.consumer_states
           (consumer, ver, cursor_seq, total_messages, total_batches, last_at, slot)
    select c.num, st.ver + 1, st.cursor_seq, st.total_messages, st.total_batches, st.last_at, r.active
      from queen.consumers c
      cross join lateral queen.latest_state(c.num) st
      cross join queen.rotation r
     where c.lane = any (v_lanes) and st.lease_until is not null;
    perform queen.tell_group(p_args ->> 'queue', '');
    status := 200;
    answer := json_build_object('success', true, 'queue', p_args ->> 'queue', 'partition', p_args ->> 'partition',
                                'deleted', v_deleted);
    return next;
end
$$;
