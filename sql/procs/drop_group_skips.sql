-- queen.drop_group_skips: a group that starts over is given again what it was to pass over.
--
-- needs: mind_skips
-- called by  queen.seek_group, queen.seek_partition, queen.forget_group
-- in         p_queue null: on all queues; p_lane null: on all partitions
-- locks      the lanes concerned in num order; before any consumer
create or replace function queen.drop_group_skips(p_group text, p_queue text, p_lane bigint)
returns void
language plpgsql
as $$
declare
    v_lanes bigint[];
begin
    if p_group = '' then
        return;
    end if;
    select array_agg(l.num) into v_lanes
      from (select l.num
              from queen.lanes l join queen.queues q on q.id = l.queue_id
             where l.num in (select k.lane from queen.skips k where k.grp = p_group)
               and (p_queue is null or q.name = p_queue) and (p_lane is null or l.num = p_lane)
             order by l.num for no key update of l) l;
    if v_lanes is not null then
        delete from queen.skips k where k.grp = p_group and k.lane = any (v_lanes);
        perform queen.mind_skips(v_lanes);
    end if;
end
$$;
