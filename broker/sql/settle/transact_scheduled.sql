-- queen.transact_scheduled: queen.transact with scheduled messages.
--
-- numbers:   kind transact_kind, status seg_status or scheduled_status
-- needs: lock_for_transaction, schedule_messages, transact
-- called by  broker/src/broker/settle/transaction.c (call "transact_scheduled"), if a transaction has such messages; queen.execute_transaction_v2
-- in         p_origin to p_required as queen.transact; then p_bare to p_id_at as queen.schedule_messages
-- out        as queen.transact, and
--            kind 3  a stored scheduled message: seg is its number (1-based), dup_id its id, created_at the time when it is due
--            kind 4  a failure: seg, status as in queen.schedule_messages, its text in error. For status 3 and 6 the caller does what
--                    is described there and retries once. Everything was rolled back, as with kind 2
-- locks      queues with a maxSize in id order, lanes in num order, consumers in num order; a broker waits at most 100 ms for each of the
--            queues and lanes (queen.push_segments)
create or replace function queen.transact_scheduled(
    p_origin int,
    p_lanes int, p_lane bigint[], p_last bigint[], p_nth int[], p_before bigint[], p_count int[],
    p_key_min bigint[], p_key_max bigint[], p_keys bytea[], p_body bytea[],
    p_plain_seg int[], p_plain_pos int[], p_plain_key uuid[],
    p_lane_id uuid[], p_group text[], p_ack_keys bytea[], p_uniform boolean[], p_lease uuid[],
    p_entry_group int[], p_entry_status int2[], p_entry_lease uuid[], p_entry_error text[],
    p_entry_code text[], p_entry_worker text[], p_worker text[], p_required uuid[],
    p_bare boolean, p_later_lane bigint[], p_later_key uuid[], p_due_us bigint[], p_delay_us bigint[],
    p_transaction_id text[], p_correlation_id text[], p_message bytea[], p_id_at int[])
returns table (kind int2, error text,
               lane bigint, first_seq bigint, created_at timestamptz,
               seg int, status int2, pos int, dup_id uuid,
               grp int, entry int, why int2, released boolean, dead boolean,
               queue_name text, lane_name text, consumer bigint, more boolean)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_failed boolean := false;
    v_timeout text := current_setting('lock_timeout');
    r        record;
begin
    -- Rows returned inside the block stay returned when the block is rolled back.
    begin
        -- All locks of both halves, in the common order.
        if p_origin <> 0 then
            perform set_config('lock_timeout', '100ms', true);
        end if;
        perform queen.lock_for_transaction(p_lane, p_later_lane, p_lane_id, p_group);
        if p_origin <> 0 then
            perform set_config('lock_timeout', v_timeout, true);
        end if;
        -- First, so that the pushes detect scheduled messages with the same transaction ids.
        for r in
            select * from queen.schedule_messages(p_origin, p_bare, p_later_lane, p_later_key, p_due_us, p_delay_us,
                                                  p_transaction_id, p_correlation_id, p_message, p_id_at)
        loop
            v_failed := v_failed or r.status > 0;
            kind := case when r.status = 0 then 3 else 4 end;
            error := case r.status when 0 then null
                                   when 1 then 'duplicate transaction id'
                                   when 3 then 'the partition is gone'
                                   when 7 then 'the queue has encryptionEnabled, but this broker has no QUEEN_ENCRYPTION_KEY'
                                   else 'the queue is encrypted' end;
            seg := r.idx + 1; status := r.status; dup_id := r.id; created_at := r.due_at;
            return next;
        end loop;
        for r in
            select * from queen.transact(p_origin, p_lanes, p_lane, p_last, p_nth, p_before, p_count, p_key_min, p_key_max,
                                           p_keys, p_body, p_plain_seg, p_plain_pos, p_plain_key, p_lane_id, p_group,
                                           p_ack_keys, p_uniform, p_lease, p_entry_group, p_entry_status, p_entry_lease,
                                           p_entry_error, p_entry_code, p_entry_worker, p_worker, p_required)
        loop
            v_failed := v_failed or r.kind = 2;
            kind := r.kind; error := r.error; lane := r.lane; first_seq := r.first_seq; created_at := r.created_at;
            seg := r.seg; status := r.status; pos := r.pos; dup_id := r.dup_id; grp := r.grp; entry := r.entry;
            why := r.why; released := r.released; dead := r.dead; queue_name := r.queue_name; lane_name := r.lane_name;
            consumer := r.consumer; more := r.more;
            return next;
        end loop;
        if v_failed then
            raise exception 'rolled back' using errcode = 'QN010';
        end if;
    exception when sqlstate 'QN010' then
        null; -- the returned rows contain the reason
    end;
end
$$;
