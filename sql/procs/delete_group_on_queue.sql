-- queen.delete_group_on_queue: DELETE /api/v1/consumer-groups/:group/queues/:queue.
--
-- needs: forget_group, param_bool
-- called by  src/api/groups.c
-- in, out    as queen.delete_group, with queue and "queueName"
-- locks      as queen.forget_group
create or replace function queen.delete_group_on_queue(p_args jsonb)
returns json
language sql
as $$
    select json_build_object(
        'success', true, 'consumerGroup', p_args ->> 'group', 'queueName', p_args ->> 'queue',
        'deletedPartitions', queen.forget_group(p_args ->> 'group', p_args ->> 'queue',
                                                queen.param_bool(p_args, 'deleteMetadata', true)),
        'metadataDeleted', queen.param_bool(p_args, 'deleteMetadata', true))
$$;
