-- queen.discover: find the lanes of a queue with messages for a group, for SQL sessions.
--
-- needs: ensure_consumers, subscribe, pending_lanes
-- called by  queen.pop_candidates
-- in         p_partition null: all partitions; p_mode, p_from: the subscription to record
-- out        the lanes with messages after the cursor, as queen.pending_lanes; with p_partition that lane and its retry lane in any
--            case (see the column pending)
-- effects    records the subscription, even for a queue that does not exist yet; creates the
--            group's consumers on every lane; records an empty scan in queen.consumer_watermarks
create or replace function queen.discover(
    p_queue text, p_partition text, p_group text, p_namespace text, p_task text, p_mode text, p_from text)
returns table (lane bigint, lane_id uuid, lane_name text, consumer bigint, pending boolean, lease_us bigint)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_queue_id uuid;
    v_lanes    bigint[];
begin
    perform queen.subscribe(p_group, case when p_namespace = '' and p_task = '' then p_queue else '' end,
                            coalesce(p_partition, ''), p_namespace, p_task, p_mode, p_from);
    select id into v_queue_id from queen.queues where name = p_queue;
    if not found then
        return;
    end if;
    v_lanes := array(select l.num from queen.lanes l
                      where l.queue_id = v_queue_id and (p_partition is null or l.name = p_partition));
    perform queen.ensure_consumers(v_lanes, array_fill(p_group, array[cardinality(v_lanes)]));
    return query select * from queen.pending_lanes(p_group, v_lanes, p_partition is not null);

    if not found and p_partition is null then
        insert into queen.consumer_watermarks as w (queue_name, consumer_group)
        values (p_queue, p_group)
            on conflict (queue_name, consumer_group)
            do update set last_empty_scan_at = now(), updated_at = now()
         where w.updated_at < now() - interval '30 seconds';
    end if;
end
$$;
