-- queen.delete_queue: DELETE /api/v1/resources/queues/:queue.
--
-- called by  src/api/resources.c
-- in         p_args.queue
-- out        {"deleted":true,"queue","existed"}; deleted is true even if there was nothing
-- effects    its watermarks go, which a DELETE by hand leaves; recorded subscriptions stay
-- locks      the queue and, by the trigger of queen.queues, everything that belongs to it (queen.forget_queues)
create or replace function queen.delete_queue(p_args jsonb)
returns json
language plpgsql
as $$
declare
    v_existed boolean;
begin
    delete from queen.queues where name = p_args ->> 'queue';
    v_existed := found;
    delete from queen.consumer_watermarks where queue_name = p_args ->> 'queue';
    perform queen.tell_group(p_args ->> 'queue', '');
    return json_build_object('deleted', true, 'queue', p_args ->> 'queue', 'existed', v_existed);
end
$$;
