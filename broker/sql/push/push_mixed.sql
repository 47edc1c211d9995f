-- queen.push_mixed: push one request with immediate and scheduled messages, all of it or nothing.
--
-- numbers:   status seg_status or scheduled_status
-- needs: push_correlated, schedule_messages
-- called by  broker/src/broker/push/push.c (call "push_mixed"), only for such requests
-- in         p_origin to p_correlation as queen.push_correlated; then p_bare to p_id_at as queen.schedule_messages
-- out        the rows of queen.push_correlated. If all segments were stored, also a row for each scheduled message (later: 0-based): status as
--            in queen.schedule_messages, dup_id its id, created_at when it is due, wait_us until then. With status 3 or 6 in such a row
--            nothing was stored, not even the segments, and the request may be sent again
-- locks      queues with a maxSize in id order, lanes in num order; waits at most 100 ms for each (queen.push_segments)
--
create or replace function queen.push_mixed(
    p_origin int, p_lanes int,
    p_lane bigint[], p_last bigint[], p_nth int[], p_before bigint[], p_count int[],
    p_key_min bigint[], p_key_max bigint[], p_keys bytea[], p_body bytea[],
    p_plain_seg int[], p_plain_pos int[], p_plain_key uuid[],
    p_correlated_seg int[], p_correlated_pos int[], p_correlation uuid[],
    p_bare boolean, p_later_lane bigint[], p_later_key uuid[], p_due_us bigint[], p_delay_us bigint[],
    p_transaction_id text[], p_correlation_id text[], p_message bytea[], p_id_at int[])
returns table (lane bigint, first_seq bigint, created_at timestamptz,
               seg int, status int2, pos int, dup_id uuid, later int, wait_us bigint)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_stored boolean := true;
    v_timeout text := current_setting('lock_timeout');
    r        record;
begin
    -- All locks of both halves, in the common order.
    perform set_config('lock_timeout', '100ms', true);
    perform q.id from queen.queues q
      where q.id in (select l.queue_id from queen.lanes l where l.num = any (p_lane) and l.limited)
      order by q.id for no key update;
    perform l.num from queen.lanes l where l.num = any (p_lane || p_later_lane) order by l.num for no key update;
    perform set_config('lock_timeout', v_timeout, true);
    -- Rows returned inside the block stay returned when the block is rolled back.
    begin
        for r in
            select * from queen.push_correlated(p_origin, true, p_lanes, p_lane, p_last, p_nth, p_before, p_count, p_key_min, p_key_max,
                                                p_keys, p_body, p_plain_seg, p_plain_pos, p_plain_key,
                                                p_correlated_seg, p_correlated_pos, p_correlation)
        loop
            v_stored := v_stored and r.status = 0;
            lane := r.lane; first_seq := r.first_seq; created_at := r.created_at;
            seg := r.seg; status := r.status; pos := r.pos; dup_id := r.dup_id;
            return next;
        end loop;
        if not v_stored then
            return;
        end if;
        lane := null; first_seq := null; seg := null; pos := null;
        for r in
            select * from queen.schedule_messages(0, p_bare, p_later_lane, p_later_key, p_due_us, p_delay_us,
                                                  p_transaction_id, p_correlation_id, p_message, p_id_at)
        loop
            v_stored := v_stored and r.status in (0, 1);
            later := r.idx; status := r.status; dup_id := r.id; created_at := r.due_at;
            wait_us := case when r.status = 0 then (extract(epoch from r.due_at - clock_timestamp()) * 1000000)::bigint end;
            return next;
        end loop;
        if not v_stored then
            raise exception 'rolled back' using errcode = 'QN010';
        end if;
    exception when sqlstate 'QN010' then
        null; -- the returned rows contain the reason
    end;
end
$$;
