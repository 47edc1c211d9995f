-- queen.delete_queue: DELETE /api/v1/resources/queues/:queue.
--
-- needs: remove_lanes, step_lanes, tell_group
-- called by  src/api/resources.c, again while the status is 0
-- in         p_args.queue; p_args.id: a further step for the queue that had this id
-- out        200 {"deleted":true,"queue","existed"}; deleted is true even if there was nothing.  0: call again with the answer
-- effects    the first step deletes the queue and its watermarks, which a DELETE by hand leaves; recorded subscriptions stay.  Each step
--            deletes some of its partitions.  queen.forget_deleted continues if nobody calls again
-- locks      the queue, its row of deleted_queues, lanes in num order, their consumers in num order
create or replace function queen.delete_queue(p_args jsonb)
returns table (status int, answer json)
language plpgsql
as $$
declare
    v_id   uuid := p_args ->> 'id';
    v_more boolean;
begin
    if v_id is null then
        delete from queen.queues q where q.name = p_args ->> 'queue' returning q.id into v_id; -- and some lanes: queen.forget_queues
        delete from queen.consumer_watermarks w where w.queue_name = p_args ->> 'queue';
    else
        perform queen.remove_lanes(array[v_id], queen.step_lanes(), true);
    end if;
    v_more := exists (select from queen.deleted_queues d where d.id = v_id);
    perform queen.tell_group(p_args ->> 'queue', '');
    if v_more then
        status := 0;
        answer := json_build_object('queue', p_args ->> 'queue', 'id', v_id);
    else
        status := 200;
        answer := json_build_object('deleted', true, 'queue', p_args ->> 'queue', 'existed', v_id is not null);
    end if;
    return next;
end
$$;
