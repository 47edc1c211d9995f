-- queen.seek_group: POST /api/v1/consumer-groups/:group/queues/:queue/seek.
--
-- needs: param_time, drop_group_skips, ensure_consumers, move_cursors, tell_group, iso_ms
-- called by  src/api/groups.c
-- in         p_args.group, p_args.queue; body.toEnd (wins), body.timestamp
-- out        {"success","consumerGroup","queueName","seekToEnd","targetTimestamp","partitionsUpdated"}; an unknown group or
--            queue is no mistake: 0 partitions
-- effects    also partitions that the group has not seen yet: to the end means all of it.  Leases end; acknowledgements under
--            them will be refused.  Messages that the group was to pass over come again.  A seek to a time removes the watermark
-- locks      lanes where it passes something over, lanes that get a consumer, then consumers in num order
-- raises     QN001 when there is neither, or the timestamp cannot be read
create or replace function queen.seek_group(p_args jsonb)
returns json
language plpgsql
as $$
declare
    v_group text := p_args ->> 'group';
    v_queue text := p_args ->> 'queue';
    v_body  jsonb := p_args -> 'body';
    v_end   boolean := v_body -> 'toEnd' = 'true';
    v_time  timestamptz;
    v_id    uuid;
    v_moved bigint := 0;
begin
    if jsonb_typeof(v_body -> 'toEnd') not in ('boolean', 'null') then
        raise exception using errcode = 'QN001', message = 'toEnd must be a boolean';
    end if;
    v_end := coalesce(v_end, false);
    if not v_end then
        v_time := queen.param_time(v_body, 'timestamp', null);
        if v_time is null then
            raise exception using errcode = 'QN001', message = 'toEnd or timestamp is required';
        end if;
    end if;

    select q.id into v_id from queen.queues q where q.name = v_queue;
    if found
       and (exists (select from queen.lanes l join queen.consumers c on c.lane = l.num and c.grp = v_group
                     where l.queue_id = v_id)
            or exists (select from queen.consumer_groups_metadata m
                        where m.consumer_group = v_group and m.queue_name = v_queue)) then
        perform queen.drop_group_skips(v_group, v_queue, null);
        v_moved := queen.move_cursors(
            array(select e.consumer
                    from queen.ensure_consumers(
                         array(select l.num from queen.lanes l where l.queue_id = v_id order by l.num),
                         array(select v_group from queen.lanes l where l.queue_id = v_id)) e), v_time);
        perform queen.tell_group(v_queue, v_group);
    end if;
    if not v_end then
        delete from queen.consumer_watermarks where queue_name = v_queue and consumer_group = v_group;
    end if;
    return json_build_object('success', true, 'consumerGroup', v_group, 'queueName', v_queue, 'seekToEnd', v_end,
                             'targetTimestamp', queen.iso_ms(v_time), 'partitionsUpdated', v_moved);
end
$$;
