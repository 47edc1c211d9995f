-- queen.seek_partition: POST /api/v1/consumer-groups/:group/queues/:queue/partitions/:partition/seek.
--
-- needs: drop_group_skips, move_cursors, notify_group, iso_ms
-- called by  broker/src/api/admin/groups.c
-- in         p_args.group, p_args.queue, p_args.partition; body.toEnd: true, or missing
-- out        200 {"success","consumerGroup","queueName","partitionName","updated","cursorMovedTo"}: the group is after the last message
--            now; updated is false if it has no state there. 404: no such partition
-- raises     QN001 if body.toEnd is anything but true
-- locks      the lane if the group has skips there, then the consumer
create or replace function queen.seek_partition(p_args jsonb)
returns table (status int, answer json)
language plpgsql
as $$
declare
    v_group text := p_args ->> 'group';
    v_lane  bigint;
    v_one   bigint[];
    v_last  timestamptz;
begin
    if coalesce(p_args -> 'body' -> 'toEnd', 'true') <> 'true' then
        raise exception 'toEnd must be true: a partition is moved to its end' using errcode = 'QN001';
    end if;
    select l.num into v_lane from queen.lanes l join queen.queues q on q.id = l.queue_id
     where q.name = p_args ->> 'queue' and l.name = p_args ->> 'partition';
    if not found then
        status := 404;
        answer := json_build_object('success', false, 'error', 'Partition not found');
        return next;
        return;
    end if;
    select array_agg(c.num) into v_one from queen.consumers c where c.lane = v_lane and c.grp = v_group;
    if v_one is not null then
        perform queen.drop_group_skips(v_group, null, v_lane);
        perform queen.move_cursors(v_one, null);
        perform queen.notify_group(p_args ->> 'queue', v_group);
    end if;
    select s.created_at into v_last from queen.segments s
     where s.lane = v_lane order by s.first_seq desc limit 1;
    status := 200;
    answer := json_build_object('success', true, 'consumerGroup', v_group, 'queueName', p_args ->> 'queue',
                                'partitionName', p_args ->> 'partition', 'updated', v_one is not null,
                                'cursorMovedTo', queen.iso_ms(v_last));
    return next;
end
$$;
