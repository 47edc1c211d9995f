-- queen.delete_group: DELETE /api/v1/consumer-groups/:group and /api/v1/consumer-groups/:group/queues/:queue.
--
-- needs: forget_group, step_lanes, param_bool, notify_group
-- called by  broker/src/api/admin/groups.c, again while the status is 0
-- in         p_args.group, p_args.queue (none: on all queues), p_args.deleteMetadata (default true);
--            p_args.after, p_args.deleted: where the previous step ended, and its count
-- out        200 {"success","consumerGroup","queueName","deletedPartitions","metadataDeleted"}, also for an unknown group. 0: call
--            again with the answer
-- effects    the first step removes recorded subscriptions, so that a pop between two steps starts from the beginning, too
-- locks      as queen.forget_group
create or replace function queen.delete_group(p_args jsonb)
returns table (status int, answer jsonb)
language plpgsql
as $$
declare
    v_group    text := p_args ->> 'group';
    v_queue    text := p_args ->> 'queue';
    v_metadata boolean := queen.param_bool(p_args, 'deleteMetadata', true);
    v_deleted  bigint := coalesce((p_args ->> 'deleted')::bigint, 0);
    r          record;
begin
    if v_metadata and not p_args ? 'after' then
        delete from queen.consumer_groups_metadata m
         where m.consumer_group = v_group and (v_queue is null or m.queue_name = v_queue);
    end if;
    select * into r from queen.forget_group(v_group, v_queue, coalesce((p_args ->> 'after')::bigint, 0), queen.step_lanes());
    v_deleted := v_deleted + r.forgotten;
    if r.last is not null then
        status := 0;
        answer := p_args || jsonb_build_object('after', r.last, 'deleted', v_deleted);
        return next;
        return;
    end if;
    delete from queen.consumer_watermarks w
     where w.consumer_group = v_group and (v_queue is null or w.queue_name = v_queue);
    perform queen.notify_group(coalesce(v_queue, ''), v_group);
    status := 200;
    answer := jsonb_build_object('success', true, 'consumerGroup', v_group, 'deletedPartitions', v_deleted,
                                 'metadataDeleted', v_metadata)
              || case when v_queue is null then '{}'::jsonb else jsonb_build_object('queueName', v_queue) end;
    return next;
end
$$;
