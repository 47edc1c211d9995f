-- queen.drop_group_skips: remove the skips of a group that starts again, so that it receives those messages.
--
-- needs: drop_skips
-- called by  queen.seek_partition, queen.delete_through_consumers
-- in         p_queue null: on all queues; p_lane null: on all partitions
-- locks      as queen.drop_skips
create or replace function queen.drop_group_skips(p_group text, p_queue text, p_lane bigint)
returns void
language sql
as $$
    select queen.drop_skips(p_group, array(
        select l.num from queen.lanes l join queen.queues q on q.id = l.queue_id
         where l.num in (select k.lane from queen.skips k where k.grp = p_group)
           and (p_queue is null or q.name = p_queue) and (p_lane is null or l.num = p_lane)))
$$;
