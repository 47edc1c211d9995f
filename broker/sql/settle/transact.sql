-- queen.transact: pushes and acknowledgements together, as brokers of before error codes and workers asked for it.
--
-- needs: transact_2
-- called by  brokers of an earlier version while a new one is rolled out
-- in, out    as queen.transact_2, without those
create or replace function queen.transact(
    p_origin int,
    p_lanes int, p_lane bigint[], p_last bigint[], p_nth int[], p_before bigint[], p_count int[],
    p_key_min bigint[], p_key_max bigint[], p_keys bytea[], p_body bytea[],
    p_plain_seg int[], p_plain_pos int[], p_plain_key uuid[],
    p_lane_id uuid[], p_group text[], p_ack_keys bytea[], p_uniform boolean[], p_lease uuid[],
    p_entry_group int[], p_entry_status int2[], p_entry_lease uuid[], p_entry_error text[],
    p_required uuid[])
returns table (kind int2, error text,
               lane bigint, first_seq bigint, created_at timestamptz,
               seg int, status int2, pos int, dup_id uuid,
               grp int, entry int, why int2, released boolean, dead boolean,
               queue_name text, lane_name text, consumer bigint, more boolean)
language sql
as $$
    select * from queen.transact_2(p_origin, p_lanes, p_lane, p_last, p_nth, p_before, p_count, p_key_min, p_key_max, p_keys, p_body,
                                   p_plain_seg, p_plain_pos, p_plain_key, p_lane_id, p_group, p_ack_keys, p_uniform, p_lease,
                                   p_entry_group, p_entry_status, p_entry_lease, p_entry_error, null, null, null, p_required)
$$;
