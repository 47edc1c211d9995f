-- queen.discover: what a group can find on a queue, for SQL sessions.
--
-- needs: discover_lanes, pending_lanes, note_empty_scan
-- called by  queen.pop_candidates; queen.discover_page for one partition
-- in         as queen.discover_lanes
-- out        the lanes with something after the cursor, as queen.pending_lanes; with p_partition that lane and its retry lane in any
--            case (see pending).  Of a queue with more than queen.step_lanes() partitions only what queen.scan_lanes finds
-- effects    as queen.discover_lanes; notes an empty scan in queen.consumer_watermarks
create or replace function queen.discover(
    p_queue text, p_partition text, p_group text, p_namespace text, p_task text, p_mode text, p_from text)
returns table (lane bigint, lane_id uuid, lane_name text, consumer bigint, pending boolean, lease_us bigint)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_lanes bigint[] := queen.discover_lanes(p_queue, p_partition, p_group, p_namespace, p_task, p_mode, p_from);
begin
    return query select * from queen.pending_lanes(p_group, v_lanes, p_partition is not null);
    if not found and p_partition is null then
        perform queen.note_empty_scan(p_queue, p_group);
    end if;
end
$$;
