-- queen.retry_lane: the number of the retry lane of a lane for a group. Creates it if it does not exist.
--
-- called by  queen.fail_messages, queen.redrive_here
-- in         p_lane: a partition. The caller has locked the group's consumer there, which prevents queen.tidy from removing the retry lane
--            before the retry is committed
-- out        its number; null if the partition is gone
-- locks      the new row of queen.lanes; the group's consumer is created together with it
create or replace function queen.retry_lane(p_lane bigint, p_group text)
returns bigint
language plpgsql
as $$
declare
    v_num      bigint;
    v_consumer bigint;
begin
    select r.num into v_num from queen.lanes l join queen.lanes r on r.queue_id = l.id and r.name = p_group
     where l.num = p_lane;
    if v_num is not null then
        return v_num;
    end if;
    insert into queen.lanes (queue_id, name, lease_seconds, limited, careful, origin, origin_queue)
    select l.id, p_group, l.lease_seconds, false, true, l.num, l.queue_id from queen.lanes l where l.num = p_lane
        on conflict (queue_id, name) do nothing
    returning num into v_num;
    if v_num is null then -- another session has created it, or there is no such lane
        return (select r.num from queen.lanes l join queen.lanes r on r.queue_id = l.id and r.name = p_group
                 where l.num = p_lane);
    end if;
    insert into queen.consumers (lane, grp) values (v_num, p_group) returning num into v_consumer;
    insert into queen.consumer_states (consumer, ver, cursor_seq, slot)
    select v_consumer, 1, 0, r.active from queen.rotation r;
    return v_num;
end
$$;
