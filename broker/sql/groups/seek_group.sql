-- queen.seek_group: POST /api/v1/consumer-groups/:group/queues/:queue/seek.
--
-- needs: param_time, lane_page, step_lanes, drop_skips, ensure_consumers, move_cursors, notify_group, iso_ms
-- called by  broker/src/api/admin/groups.c, again while the status is 0
-- in         p_args.group, p_args.queue; body.toEnd (wins), body.timestamp; p_args.after, p_args.moved: where the previous step ended,
--            and its count
-- out        200 {"success","consumerGroup","queueName","seekToEnd","targetTimestamp","partitionsUpdated"}; for an unknown group or
--            queue with 0 partitions. 0: call again with the answer
-- effects    also moves the group on partitions that it has not used yet. Leases end; acknowledgements under
--            them will be rejected. Messages that the group would have skipped are delivered. A seek to a time removes the watermark
-- locks      lanes in num order, against deletion; lanes with skips of the group; then consumers in num order
-- raises     QN001 if both are missing, or the timestamp is invalid
create or replace function queen.seek_group(p_args jsonb)
returns table (status int, answer jsonb)
language plpgsql
as $$
declare
    v_group text := p_args ->> 'group';
    v_queue text := p_args ->> 'queue';
    v_body  jsonb := p_args -> 'body';
    v_end   boolean := v_body -> 'toEnd' = 'true';
    v_time  timestamptz;
    v_id    uuid;
    v_moved bigint := coalesce((p_args ->> 'moved')::bigint, 0);
    v_page  record;
begin
    if jsonb_typeof(v_body -> 'toEnd') not in ('boolean', 'null') then
        raise exception using errcode = 'QN001', message = 'toEnd must be true or false';
    end if;
    v_end := coalesce(v_end, false);
    if not v_end then
        v_time := queen.param_time(v_body, 'timestamp', null);
        if v_time is null then
            raise exception using errcode = 'QN001', message = 'toEnd or timestamp must be given';
        end if;
    end if;

    select q.id into v_id from queen.queues q where q.name = v_queue;
    if found
       and (p_args ? 'after'
            or exists (select from queen.lanes l join queen.consumers c on c.lane = l.num and c.grp = v_group
                        where l.queue_id = v_id)
            or exists (select from queen.consumer_groups_metadata m
                        where m.consumer_group = v_group and m.queue_name = v_queue)) then
        select * into v_page from queen.lane_page(v_id, p_args ->> 'after', queen.step_lanes());
        perform l.num from queen.lanes l where l.num = any (v_page.lanes) order by l.num for key share;
        perform queen.drop_skips(v_group, v_page.lanes);
        v_moved := v_moved + queen.move_cursors(
            array(select e.consumer
                    from queen.ensure_consumers(v_page.lanes, array(select v_group from unnest(v_page.lanes))) e), v_time);
        if v_page.more then
            status := 0;
            answer := p_args || jsonb_build_object('after', v_page.names[cardinality(v_page.names)], 'moved', v_moved);
            return next;
            return;
        end if;
        perform queen.notify_group(v_queue, v_group);
    end if;
    if not v_end then
        delete from queen.consumer_watermarks w where w.queue_name = v_queue and w.consumer_group = v_group;
    end if;
    status := 200;
    answer := jsonb_build_object('success', true, 'consumerGroup', v_group, 'queueName', v_queue, 'seekToEnd', v_end,
                                 'targetTimestamp', queen.iso_ms(v_time), 'partitionsUpdated', v_moved);
    return next;
end
$$;
