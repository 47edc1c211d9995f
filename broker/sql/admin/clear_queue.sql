-- queen.clear_queue: DELETE /api/v1/queues/:queue/clear.
--
-- needs: lane_page, step_lanes, step_rows, clear_lane, latest_state, notify_group
-- called by  broker/src/api/admin/actions.c, again while the status is 0
-- in         p_args.queue; p_args.partition: only that one; p_args.after, p_args.deleted: where the previous step ended, and its count
-- out        200 {"success","queue","partition","deleted"}; 404: no such queue or partition. 0: call again with the answer
-- effects    removes all messages, their retries and everything that refers to them. Partitions, cursors and the numbering stay (an emptied
--            lane keeps a marker, see queen.sweep). Leases end, because nothing is left to acknowledge
-- locks      lanes and their retry lanes in num order, then the consumers of both in num order
create or replace function queen.clear_queue(p_args jsonb)
returns table (status int, answer jsonb)
language plpgsql
as $$
declare
    v_id      uuid;
    v_page    record;
    v_retries bigint[];
    v_left    int := queen.step_rows();
    v_after   text := p_args ->> 'after'; -- the last partition that was cleared
    v_deleted bigint := coalesce((p_args ->> 'deleted')::bigint, 0);
    v_n       int;
    v_clean   boolean := true; -- the whole page is cleared
    v_missing text;
    r         record;
begin
    select q.id into v_id from queen.queues q where q.name = p_args ->> 'queue';
    if p_args ->> 'partition' is null then
        select * into v_page from queen.lane_page(v_id, v_after, queen.step_lanes());
    else
        select array(select l.num from queen.lanes l where l.queue_id = v_id and l.name = p_args ->> 'partition') as lanes,
               array[p_args ->> 'partition'] as names, false as more into v_page;
    end if;
    if v_id is null and not p_args ? 'deleted' then
        v_missing := 'Queue not found';
    elsif v_page.lanes = '{}' and p_args ->> 'partition' is not null and not p_args ? 'deleted' then
        v_missing := 'Partition not found';
    end if;
    if v_missing is not null then
        status := 404;
        answer := jsonb_build_object('success', false, 'error', v_missing);
        return next;
        return;
    end if;

    v_retries := array(select k.num from queen.lanes k where k.origin = any (v_page.lanes));
    perform l.num from queen.lanes l where l.num = any (v_page.lanes || v_retries) order by l.num for update;
    perform c.num from queen.consumers c where c.lane = any (v_page.lanes || v_retries) order by c.num for no key update;
    for i in 1 .. cardinality(v_page.lanes) loop
        select * into r from queen.clear_lane(v_page.lanes[i], v_left);
        v_deleted := v_deleted + r.messages;
        v_left := v_left - r.segments;
        v_clean := r.done and v_left > 0;
        exit when not r.done;
        v_after := v_page.names[i];
        exit when v_left <= 0;
    end loop;
    v_page.more := v_page.more or not v_clean;
    delete from queen.attempts a
     where a.ctid = any (array(select k.ctid from queen.attempts k where k.lane = any (v_page.lanes) limit queen.step_rows()));
    get diagnostics v_n = row_count;
    if v_n >= queen.step_rows() then -- this page once more
        v_after := p_args ->> 'after';
        v_page.more := true;
    end if;
    -- With their scheduled retries. A retry lane created meanwhile is locked last: only a session that holds these consumers could wait for it.
    delete from queen.lanes k where k.origin = any (v_page.lanes);
    insert into queen.consumer_states
           (consumer, ver, cursor_seq, total_messages, total_batches, last_at, slot)
    select c.num, st.ver + 1, coalesce(st.taken_seq, st.cursor_seq), st.total_messages, st.total_batches, st.last_at, o.active
      from queen.consumers c
      cross join lateral queen.latest_state(c.num) st
      cross join queen.rotation o
     where c.lane = any (v_page.lanes) and (st.lease_until is not null or st.taken_seq is not null);
    if v_page.more then
        status := 0;
        answer := p_args || jsonb_build_object('after', v_after, 'deleted', v_deleted);
    else
        perform queen.notify_group(p_args ->> 'queue', '');
        status := 200;
        answer := jsonb_build_object('success', true, 'queue', p_args ->> 'queue', 'partition', p_args ->> 'partition',
                                     'deleted', v_deleted);
    end if;
    return next;
end
$$;
