-- queen.discover_lanes: the partitions that a SQL pop of a group looks at.
--
-- needs: ensure_consumers, subscribe, scan_lanes, lane_page, step_lanes
-- called by  queen.discover; queen.pop_unified_batch
-- in         p_partition null: all partitions; p_mode, p_from: the subscription to record
-- out        up to queen.step_lanes() lanes: all of a queue that has no more; else those that queen.scan_lanes finds
-- effects    records the subscription, even for a queue that does not exist yet; creates the group's consumers on these lanes
-- locks      lanes that get a consumer; for a queue with more partitions also as queen.scan_lanes
create or replace function queen.discover_lanes(
    p_queue text, p_partition text, p_group text, p_namespace text, p_task text, p_mode text, p_from text)
returns bigint[]
language plpgsql
as $$
declare
    v_queue_id uuid;
    v_lanes    bigint[];
    v_more     boolean;
begin
    perform queen.subscribe(p_group, case when p_namespace = '' and p_task = '' then p_queue else '' end,
                            coalesce(p_partition, ''), p_namespace, p_task, p_mode, p_from);
    select id into v_queue_id from queen.queues where name = p_queue;
    if not found then
        return '{}';
    end if;
    if p_partition is not null then
        v_lanes := array(select l.num from queen.lanes l where l.queue_id = v_queue_id and l.name = p_partition);
    elsif exists (select from queen.group_scans s where s.queue_id = v_queue_id and s.grp = p_group) then
        return queen.scan_lanes(v_queue_id, p_queue, p_group);
    else
        select g.lanes, g.more into v_lanes, v_more from queen.lane_page(v_queue_id, null, queen.step_lanes()) g;
        if v_more then
            return queen.scan_lanes(v_queue_id, p_queue, p_group);
        end if;
    end if;
    perform queen.ensure_consumers(v_lanes, array_fill(p_group, array[cardinality(v_lanes)]));
    return v_lanes;
end
$$;
