-- queen.delete_queue: DELETE /api/v1/resources/queues/:queue.
--
-- needs: remove_lanes, step_lanes, notify_group
-- called by  broker/src/api/admin/resources.c, again while the status is 0
-- in         p_args.queue; p_args.existed: set in further steps, from the answer of the first
-- out        200 {"deleted":true,"queue","existed"}; deleted is true even if there was nothing. 0: call again with the answer
-- effects    the first step deletes the queue and its watermarks, which a DELETE by hand leaves; recorded subscriptions stay. Each step
--            deletes some of its partitions. queen.forget_deleted continues if there is no further call. Partitions left by an earlier,
--            unfinished deletion of this name are deleted as well: once 200 is answered, no old partition accepts messages
-- locks      the queue, its rows of deleted_queues, lanes in num order, their consumers in num order
create or replace function queen.delete_queue(p_args jsonb)
returns table (status int, answer json)
language plpgsql
as $$
declare
    v_existed boolean := p_args ->> 'existed';
begin
    if v_existed is null then
        delete from queen.queues q where q.name = p_args ->> 'queue'; -- and some lanes: queen.forget_queues
        v_existed := found;
        delete from queen.consumer_watermarks w where w.queue_name = p_args ->> 'queue';
    else
        perform queen.remove_lanes(array(select d.id from queen.deleted_queues d where d.name = p_args ->> 'queue'),
                                   queen.step_lanes(), true);
    end if;
    perform queen.notify_group(p_args ->> 'queue', '');
    if exists (select from queen.deleted_queues d where d.name = p_args ->> 'queue') then
        status := 0;
        answer := json_build_object('queue', p_args ->> 'queue', 'existed', v_existed);
    else
        status := 200;
        answer := json_build_object('deleted', true, 'queue', p_args ->> 'queue', 'existed', v_existed);
    end if;
    return next;
end
$$;
