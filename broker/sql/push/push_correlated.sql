-- queen.push_correlated: push segments that contain messages with correlation ids, and index these messages.
--
-- needs: push_segments
-- called by  broker/src/broker/push/push.c (call "push_correlated"), for batches with such messages; others use queen.push_segments
-- in         as queen.push_segments; then per message with a correlation id: its segment (1-based), its position there, and
--            queen.transaction_key of the id
-- out, locks as queen.push_segments
create or replace function queen.push_correlated(
    p_origin int, p_whole boolean, p_lanes int,
    p_lane bigint[], p_last bigint[], p_nth int[], p_before bigint[], p_count int[],
    p_key_min bigint[], p_key_max bigint[], p_keys bytea[], p_body bytea[],
    p_plain_seg int[], p_plain_pos int[], p_plain_key uuid[],
    p_correlated_seg int[], p_correlated_pos int[], p_correlation uuid[])
returns table (lane bigint, first_seq bigint, created_at timestamptz,
               seg int, status int2, pos int, dup_id uuid)
language plpgsql
as $$
#variable_conflict use_column
declare
    r         record;
    v_first   bigint[] := '{}'; -- of stored segments, in order
    v_refused int[] := '{}';
begin
    for r in
        select * from queen.push_segments(p_origin, p_whole, p_lanes, p_lane, p_last, p_nth, p_before, p_count, p_key_min, p_key_max,
                                          p_keys, p_body, p_plain_seg, p_plain_pos, p_plain_key)
    loop
        lane := r.lane; first_seq := r.first_seq; created_at := r.created_at;
        seg := r.seg; status := r.status; pos := r.pos; dup_id := r.dup_id;
        if r.status = 0 then
            v_first := v_first || r.first_seq;
        else
            v_refused := v_refused || r.seg;
        end if;
        return next;
    end loop;
    -- Rows of stored segments are in the order of p_lane.
    insert into queen.correlations (correlation, lane, seq)
    select c.correlation, p_lane[c.seg], s.first_seq + c.pos
      from unnest(p_correlated_seg, p_correlated_pos, p_correlation) c(seg, pos, correlation)
      join (select n.seg, v_first[row_number() over (order by n.seg)] as first_seq
              from generate_series(1, cardinality(p_lane)) n(seg) where n.seg <> all (v_refused)) s on s.seg = c.seg;
end
$$;
