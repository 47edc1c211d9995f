-- queen.discover_page: find the lanes with messages for a group on some partitions of a queue.
--
-- needs: discover, begin_scan, number_consumers, subscribe, lane_page, pending_lanes, step_lanes, note_empty_scan
-- called by  broker/src/broker/pop/group.c, broker/src/broker/pop/selector.c (call "discover") when a group first uses a queue, and again
--            after changes that the broker may have missed; broker/src/broker/pop/scan.c for the pages after the first
-- in         as queen.discover; p_after: the page after the partition of this name; null: the first page
-- out        as queen.discover. consumer 0 of a pending lane: another transaction has locked the lane, and the broker requests its
--            consumer again. A last row with lane 0: there may be more partitions after lane_name
-- effects    as queen.discover, for the partitions of this page. An empty scan is recorded only if the first page contains all partitions;
--            otherwise the broker records it (queen.note_empty). The first of several pages records a new group in queen.group_scans,
--            so that retention keeps its messages until it has consumers on all pages
-- locks      as queen.begin_scan, then as queen.number_consumers; for one partition as queen.ensure_consumers
create or replace function queen.discover_page(
    p_queue text, p_partition text, p_group text, p_namespace text, p_task text, p_mode text, p_from text, p_after text)
returns table (lane bigint, lane_id uuid, lane_name text, consumer bigint, pending boolean, lease_us bigint)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_queue_id uuid;
    v_page     record;
    v_locked   bigint[];
begin
    if p_partition is not null then
        return query select * from queen.discover(p_queue, p_partition, p_group, p_namespace, p_task, p_mode, p_from);
        return;
    end if;
    if p_after is null then
        perform queen.subscribe(p_group, case when p_namespace = '' and p_task = '' then p_queue else '' end, '',
                                p_namespace, p_task, p_mode, p_from);
    end if;
    select id into v_queue_id from queen.queues where name = p_queue;
    if not found then
        return;
    end if;
    select * into v_page from queen.lane_page(v_queue_id, p_after, queen.step_lanes());
    if p_after is null and v_page.more
       and exists (select from unnest(v_page.lanes) u(num)
                    where (select c.num from queen.consumers c where c.lane = u.num and c.grp = p_group) is null) then
        perform queen.begin_scan(v_queue_id, p_group);
    end if;
    v_locked := array(select n.lane from queen.number_consumers(v_page.lanes, array_fill(p_group, array[cardinality(v_page.lanes)])) n
                       where n.consumer = 0);
    return query
    select * from queen.pending_lanes(p_group, v_page.lanes, false)
     union all
    select l.num, l.id, l.name::text, 0::bigint, true, null::bigint from queen.lanes l where l.num = any (v_locked);

    if not found and p_after is null and not v_page.more then
        perform queen.note_empty_scan(p_queue, p_group);
    end if;
    if v_page.more then
        lane := 0;
        lane_id := '00000000-0000-0000-0000-000000000000';
        lane_name := v_page.names[cardinality(v_page.names)];
        consumer := 0;
        pending := false;
        return next;
    end if;
end
$$;
