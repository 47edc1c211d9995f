-- queen.delete_through_consumers: DELETE FROM queen.partition_consumers.
--
-- needs: drop_group_skips, tell_group
-- called by  a row trigger on the view queen.partition_consumers (sql/views/partition_consumers.sql)
-- effects    the group starts afresh on that partition
-- locks      the lane when the group passes something over there, then the consumer
create or replace function queen.delete_through_consumers()
returns trigger
language plpgsql
as $$
declare
    v_lane  record;
    v_num   bigint;
begin
    select l.num, q.name into v_lane from queen.lanes l join queen.queues q on q.id = l.queue_id
     where l.id = old.partition_id;
    perform queen.drop_group_skips(old.consumer_group, null, v_lane.num);
    delete from queen.consumers c where c.lane = v_lane.num and c.grp = old.consumer_group returning c.num into v_num;
    if v_num is null then
        return null; -- somebody was faster
    end if;
    delete from queen.consumer_states s where s.consumer = v_num;
    delete from queen.lanes r where r.origin = v_lane.num and r.name = old.consumer_group; -- its retries
    perform queen.tell_group(v_lane.name, old.consumer_group);
    return old;
end
$$;
