-- queen.delete_group: DELETE /api/v1/consumer-groups/:group.
--
-- needs: forget_group, param_bool
-- called by  src/api/groups.c
-- in         p_args.group, p_args.deleteMetadata (true unless it says otherwise)
-- out        {"success","consumerGroup","deletedPartitions","metadataDeleted"}; an unknown group is no mistake
-- locks      as queen.forget_group
create or replace function queen.delete_group(p_args jsonb)
returns json
language sql
as $$
    select json_build_object(
        'success', true, 'consumerGroup', p_args ->> 'group',
        'deletedPartitions', queen.forget_group(p_args ->> 'group', null, queen.param_bool(p_args, 'deleteMetadata', true)),
        'metadataDeleted', queen.param_bool(p_args, 'deleteMetadata', true))
$$;
