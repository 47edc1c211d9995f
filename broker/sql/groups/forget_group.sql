-- queen.forget_group: delete a group's state and retries on some partitions. Its next pop there starts as a new group.
--
-- needs: drop_skips
-- called by  queen.delete_group, in steps
-- in         p_queue null: on all queues; p_after: the lane where the previous step ended, 0: the first step; p_limit: maximum number
--            of partitions
-- out        forgotten: number of partitions on which it had a state; last: where this step ended, null: nothing is left
-- locks      rows of group_scans by queue; lanes with skips of the group, and its retry lanes, in num order; rows of owners by lane; consumers in num order
create or replace function queen.forget_group(
    p_group text, p_queue text, p_after bigint, p_limit int, out forgotten bigint, out last bigint)
language plpgsql
as $$
declare
    v_queue     uuid;
    v_lanes     bigint[];
    v_retries   bigint[];
    v_consumers bigint[];
begin
    forgotten := 0;
    select q.id into v_queue from queen.queues q where q.name = p_queue;
    if p_queue is not null and v_queue is null then
        return;
    end if;
    if p_after = 0 then
        perform from queen.group_scans s where s.grp = p_group and (p_queue is null or s.queue_id = v_queue)
          order by s.queue_id for update;
        delete from queen.group_scans s where s.grp = p_group and (p_queue is null or s.queue_id = v_queue);
    end if;
    v_lanes := array(select c.lane from queen.consumers c where c.grp = p_group and c.lane > p_after order by c.lane limit p_limit);
    last := case when cardinality(v_lanes) >= p_limit then v_lanes[cardinality(v_lanes)] end;
    -- Not a join: a plan made when there was one lane would scan all lanes for each.
    select array_agg(k.num), array_agg(k.num) filter (where k.origin is not null) into v_lanes, v_retries
      from unnest(v_lanes) u(num)
      cross join lateral (select l.num, l.origin from queen.lanes l
                           where l.num = u.num and (p_queue is null or coalesce(l.origin_queue, l.queue_id) = v_queue)
                             and (l.origin is null or l.origin > p_after
                                  or (select c.num from queen.consumers c where c.lane = l.origin and c.grp = p_group) is null) offset 0) k;
    -- Its retry lanes of these partitions are removed in the same step. A retry lane that a later step finds belongs to messages
    -- delivered after the deletion, unless the group has no consumer on the partition.
    v_retries := v_retries || array(select r.num from queen.lanes r
                                     where r.origin = any (v_lanes) and r.name = p_group and r.num <> all (coalesce(v_retries, '{}')));
    v_lanes := v_lanes || array(select unnest(v_retries) except select unnest(v_lanes));

    perform l.num from queen.lanes l
      where l.num = any (v_retries || array(select distinct s.lane from queen.skips s where s.lane = any (v_lanes) and s.grp = p_group))
      order by l.num for update;
    perform queen.drop_skips(p_group, v_lanes);
    if p_after = 0 then
        -- All in one step: a row of owners may exist without a consumer, and there are few.
        perform o.lane from queen.owners o
          where o.grp = p_group and (p_queue is null or (select l.queue_id from queen.lanes l where l.num = o.lane) = v_queue)
          order by o.lane for update;
        delete from queen.owners o
         where o.grp = p_group and (p_queue is null or (select l.queue_id from queen.lanes l where l.num = o.lane) = v_queue);
    end if;
    -- Lock those of its retry lanes together with the others, in one order, because an acknowledgement may contain both.
    -- A retry lane may have no consumer yet, so partitions are counted by their own consumers.
    select array_agg(k.num), count(*) filter (where k.lane <> all (coalesce(v_retries, '{}'))) into v_consumers, forgotten
      from (select c.num, c.lane from queen.consumers c where c.lane = any (v_lanes) and c.grp = p_group order by c.num for update) k;
    -- Include a retry lane that was created meanwhile: only a session that holds these consumers could wait for it.
    delete from queen.lanes r
     where r.num = any (v_retries || array(select k.num from queen.lanes k where k.origin = any (v_lanes) and k.name = p_group));
    delete from queen.consumers c where c.num = any (v_consumers);
    delete from queen.consumer_states s where s.consumer = any (v_consumers);
end
$$;
