-- queen.fix_partitions: create the fixed set of partitions of a new queue.
--
-- needs: ensure_lanes
-- called by  queen.configure_queue, which has locked the queue's row
-- in         p_wanted 0: leave it as it is
-- out        the number of its partitions, 0: not fixed. They exist afterwards; an unused partition Default is removed
-- locks      the queue (by its caller); lanes of the queue
-- raises     QN001: more than 1024, another number than before, or a queue that has other partitions already
create or replace function queen.fix_partitions(p_queue uuid, p_name text, p_wanted int)
returns int
language plpgsql
as $$
declare
    v_has int := (select q.partitions from queen.queues q where q.id = p_queue);
begin
    if p_wanted = 0 or p_wanted = v_has then
        return v_has;
    elsif p_wanted > 1024 then
        raise exception 'option partitions must be at most 1024' using errcode = 'QN001';
    elsif v_has > 0 then -- a change would move keys to other partitions and break their order
        raise exception 'option partitions of this queue is % and cannot be changed', v_has using errcode = 'QN001';
    end if;
    perform l.num from queen.lanes l where l.queue_id = p_queue order by l.num for update;
    if exists (select from queen.lanes l where l.queue_id = p_queue
                and (l.name <> 'Default' or exists (select from queen.segments s where s.lane = l.num))) then
        raise exception 'option partitions must be set when a queue is created: this one has partitions already' using errcode = 'QN001';
    end if;
    update queen.queues set partitions = p_wanted where id = p_queue;
    perform queen.ensure_lanes(array_fill(p_name, array[p_wanted]),
                               array(select n::text from generate_series(0, p_wanted - 1) n));
    delete from queen.lanes where queue_id = p_queue and name = 'Default'; -- last, because it locks consumers
    return p_wanted;
end
$$;
