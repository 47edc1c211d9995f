-- queen.delete_through_consumers: DELETE FROM queen.partition_consumers.
--
-- needs: drop_group_skips, notify_group
-- called by  a row trigger on the view queen.partition_consumers (broker/sql/compat/partition_consumers.sql)
-- effects    the group starts as a new group on that partition
-- locks      the lane and the group's retry lane in num order, then the consumers of both in num order
create or replace function queen.delete_through_consumers()
returns trigger
language plpgsql
as $$
declare
    v_lane    record;
    v_retries bigint[]; -- the group's retry lane
    v_num     bigint;
begin
    select l.num, q.name into v_lane from queen.lanes l join queen.queues q on q.id = l.queue_id
     where l.id = old.partition_id;
    v_retries := array(select r.num from queen.lanes r where r.origin = v_lane.num and r.name = old.consumer_group);
    perform l.num from queen.lanes l where l.num = any (v_retries || v_lane.num) order by l.num for update;
    perform queen.drop_group_skips(old.consumer_group, null, v_lane.num);
    perform c.num from queen.consumers c
      where c.lane = any (v_retries || v_lane.num) and c.grp = old.consumer_group order by c.num for update;
    delete from queen.consumers c where c.lane = v_lane.num and c.grp = old.consumer_group returning c.num into v_num;
    if v_num is null then
        return null; -- another session has deleted it
    end if;
    delete from queen.consumer_states s where s.consumer = v_num;
    -- Include a retry lane that was created meanwhile: only a session that holds the consumer could wait for it.
    delete from queen.lanes r where r.origin = v_lane.num and r.name = old.consumer_group;
    perform queen.notify_group(v_lane.name, old.consumer_group);
    return old;
end
$$;
