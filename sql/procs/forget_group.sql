-- queen.forget_group: a group's state goes; its next pop starts afresh.
--
-- needs: drop_group_skips, tell_group
-- called by  queen.delete_group, queen.delete_group_on_queue
-- in         p_queue null: on all queues; p_metadata: its recorded subscriptions too
-- out        on how many partitions it had a state
-- locks      lanes where it passes something over, in num order; then its consumers in num order; then its retry lanes, to which
--            only firing appends, and that waits for no consumer
create or replace function queen.forget_group(p_group text, p_queue text, p_metadata boolean)
returns bigint
language plpgsql
as $$
declare
    v_consumers bigint[];
begin
    perform queen.drop_group_skips(p_group, p_queue, null);
    -- Those of its retry lanes with the others, in one order: an acknowledgement may be of both.
    select array_agg(c.num) filter (where c.is_own) into v_consumers
      from (select c.num, l.origin is null as is_own
              from queen.consumers c join queen.lanes l on l.num = c.lane
             where c.grp = p_group
               and (p_queue is null
                    or coalesce(l.origin_queue, l.queue_id) = (select q.id from queen.queues q where q.name = p_queue))
             order by c.num for update of c) c;
    delete from queen.lanes r
     where r.origin is not null and r.name = p_group
       and (p_queue is null or r.origin_queue = (select q.id from queen.queues q where q.name = p_queue));
    delete from queen.owners o
     where o.grp = p_group
       and (p_queue is null or o.lane in (select l.num from queen.lanes l join queen.queues q on q.id = l.queue_id
                                           where q.name = p_queue));
    delete from queen.consumers where num = any (v_consumers);
    delete from queen.consumer_states where consumer = any (v_consumers);
    delete from queen.consumer_watermarks
     where consumer_group = p_group and (p_queue is null or queue_name = p_queue);
    if p_metadata then
        delete from queen.consumer_groups_metadata
         where consumer_group = p_group and (p_queue is null or queue_name = p_queue);
    end if;
    perform queen.tell_group(coalesce(p_queue, ''), p_group);
    return coalesce(cardinality(v_consumers), 0);
end
$$;
