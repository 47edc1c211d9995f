-- queen.delete_message: DELETE /api/v1/messages/:partitionId/:transactionId.
--
-- needs: locate_message, lock_lane, forget_retries, remove_message, transaction_key
-- called by  broker/src/api/admin/actions.c
-- in         p_args.partitionId, p_args.transactionId
-- out        {"success","partitionId","transactionId","message"}; success is false if there is no such message
-- locks      as queen.lock_lane
create or replace function queen.delete_message(p_args jsonb)
returns json
language plpgsql
as $$
declare
    m       record;
    v_found boolean := false;
begin
    select * into m from queen.locate_message(p_args);
    if found then
        perform queen.lock_lane(m.lane);
        -- Search again under the lock: another session may have deleted it.
        select * into m from queen.locate_message(p_args);
        v_found := found;
        if v_found then
            perform queen.forget_retries(m.lane, queen.transaction_key(p_args ->> 'transactionId'), null, true);
            perform queen.remove_message(m.lane, m.seq);
        end if;
    end if;
    return json_build_object('success', v_found, 'partitionId', p_args ->> 'partitionId',
                             'transactionId', p_args ->> 'transactionId',
                             'message', case when v_found then 'removed' else 'Message not found' end);
end
$$;
