-- queen.settle_tries: acknowledge deliveries, and record how often the consumer has tried them before.
--
-- numbers:   why ack_why
-- needs: settle, note_tries
-- called by  broker/src/broker/settle/ack.c (call "settle_tries"), if an entry has earlier tries; its group is not uniform then
-- in         arguments as queen.settle; p_entry_tries: as queen.note_tries, per entry; null: none
-- out        as queen.settle
-- locks      as queen.settle
create or replace function queen.settle_tries(
    p_origin int, p_lane_id uuid[], p_group text[], p_keys bytea[], p_uniform boolean[], p_lease uuid[],
    p_entry_group int[], p_entry_status int2[], p_entry_lease uuid[], p_entry_error text[],
    p_entry_code text[], p_entry_worker text[], p_worker text[], p_entry_after int[], p_entry_tries text[])
returns table (grp int, entry int, why int2, released boolean, dead boolean,
               queue_name text, lane_name text, lane bigint, consumer bigint, more boolean,
               attempt int, due_at timestamptz)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_since timestamptz := clock_timestamp(); -- rows of history that queen.settle adds are not older
    v_grp   int;  -- the group that v_first is of
    v_first int;  -- its first entry
    v_at    int;
begin
    for grp, entry, why, released, dead, queue_name, lane_name, lane, consumer, more, attempt, due_at in
        select s.* from queen.settle(p_origin, p_lane_id, p_group, p_keys, p_uniform, p_lease, p_entry_group, p_entry_status, p_entry_lease,
                                     p_entry_error, p_entry_code, p_entry_worker, p_worker, false, '{}', p_entry_after) s
    loop
        if grp is distinct from v_grp then
            v_grp := grp;
            v_first := array_position(p_entry_group, grp);
        end if;
        v_at := v_first + entry;
        if why = 0 and lane is not null and p_entry_tries[v_at] is not null then
            perform queen.note_tries(lane, p_group[grp], encode(substr(p_keys[grp], entry * 16 + 1, 16), 'hex')::uuid, v_since,
                                     coalesce(p_entry_worker[v_at], p_worker[grp]), p_entry_tries[v_at]::jsonb);
        end if;
        return next;
    end loop;
end
$$;
