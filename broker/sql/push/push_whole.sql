-- queen.push_whole: store the segments of one transaction, or report why that failed.
--
-- numbers:   status seg_status
-- needs: push_segments, note_correlations
-- called by  queen.transact, queen.stream_cycle
-- in         as queen.push_segments with p_whole
-- out        a row for each stored segment, in the order of p_lane, and one for each that failed itself: columns as
--            queen.push_segments, the text of a failure in error. After a failure the caller must roll back
-- locks      as queen.push_segments
create or replace function queen.push_whole(
    p_origin int, p_lanes int, p_lane bigint[], p_last bigint[], p_nth int[], p_before bigint[], p_count int[],
    p_key_min bigint[], p_key_max bigint[], p_keys bytea[], p_body bytea[],
    p_plain_seg int[], p_plain_pos int[], p_plain_key uuid[])
returns table (lane bigint, first_seq bigint, created_at timestamptz, seg int, status int2, pos int, dup_id uuid, error text)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_nth int := 0;
    r     record;
begin
    for r in
        select p.*, q.name as queue_name
          from queen.push_segments(p_origin, true, p_lanes, p_lane, p_last, p_nth, p_before, p_count,
                                   p_key_min, p_key_max, p_keys, p_body, p_plain_seg, p_plain_pos, p_plain_key) p
          left join queen.lanes l on p.status = 4 and l.num = p_lane[p.seg]
          left join queen.queues q on q.id = l.queue_id
    loop
        continue when r.status = 2; -- only a consequence of the failure in another row
        error := case r.status when 1 then 'duplicate transaction id'
                               when 3 then 'the partition is gone'
                               when 6 then 'the queue is encrypted'
                               when 7 then 'the queue has encryptionEnabled, but this broker has no QUEEN_ENCRYPTION_KEY'
                               when 4 then format('queue "%s" is full', r.queue_name) end;
        lane := r.lane; first_seq := r.first_seq; created_at := r.created_at;
        seg := r.seg; status := r.status; pos := r.pos; dup_id := r.dup_id;
        return next;
        if r.status = 0 then
            v_nth := v_nth + 1; -- as long as all are stored, rows are in the order of p_lane
            perform queen.note_correlations(r.lane, r.first_seq, p_count[v_nth], p_keys[v_nth], p_body[v_nth]);
        end if;
    end loop;
end
$$;
