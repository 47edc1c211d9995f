-- queen.transact: apply pushes and acknowledgements together or not at all.
--
-- numbers:   kind transact_kind, why ack_why, status seg_status or ack_status
-- needs: leased_holds, lock_for_transaction, push_whole, ensure_consumers, settle
-- called by  broker/src/broker/settle/transaction.c (call "transact"), one call per transaction; queen.transact_scheduled
-- in         p_origin; then the segments of the pushes, as for queen.push_segments with p_whole (no key may occur
--            twice in one lane: the caller reports that itself); then the acknowledgements, as for
--            queen.settle with p_final (p_ack_keys is its p_keys), at most one group per (partition, consumer
--            group); an entry without a lease id has a null lease, and status 3 (retry) is rejected like an
--            unknown one
--            p_required  keys of the requiredLeases; empty: nothing to check
-- out        kind 0  a stored segment, in the order of p_lane: lane, first_seq, created_at (status 0)
--            kind 1  an acknowledgement that succeeded, columns as in queen.settle
--            kind 2  a failure, with its text in error:
--                      of a push: seg (1-based) and status as in queen.push_segments; status 1 with pos and dup_id.
--                      Status 3 (the lane is gone): resolve the name again and retry once;
--                      status 6 (the lane is sealed): encrypt and retry once.
--                      of an ack: grp, entry (null: the whole group), why as in queen.settle
--            One row of kind 2 means that everything was rolled back. Rows of the other kinds then show what would
--            have happened, for answers that list the operations before the failure.
-- locks      queues with a maxSize in id order, lanes in num order, consumers in num order; a broker waits at most 100 ms for each
-- raises     nothing for a business failure
create or replace function queen.transact(
    p_origin int,
    p_lanes int, p_lane bigint[], p_last bigint[], p_nth int[], p_before bigint[], p_count int[],
    p_key_min bigint[], p_key_max bigint[], p_keys bytea[], p_body bytea[],
    p_plain_seg int[], p_plain_pos int[], p_plain_key uuid[],
    p_lane_id uuid[], p_group text[], p_ack_keys bytea[], p_uniform boolean[], p_lease uuid[],
    p_entry_group int[], p_entry_status int2[], p_entry_lease uuid[], p_entry_error text[],
    p_entry_code text[], p_entry_worker text[], p_worker text[], p_required uuid[])
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
    v_now    timestamptz;
    v_timeout text := current_setting('lock_timeout');
    r        record;
begin
    -- Rows returned inside the block stay returned when the block is rolled back.
    begin
        -- If the group has no consumer on a partition yet, lock the lane before any consumer.
        if exists (select from unnest(p_lane_id, p_group) u(lane_id, grp)
                    cross join lateral (select l.num from queen.lanes l where l.id = u.lane_id offset 0) k
                    where (select c.num from queen.consumers c where c.lane = k.num and c.grp = u.grp) is null) then
            if p_origin <> 0 then
                perform set_config('lock_timeout', '100ms', true);
            end if;
            perform queen.lock_for_transaction(p_lane, '{}', p_lane_id, p_group);
            if p_origin <> 0 then
                perform set_config('lock_timeout', v_timeout, true);
            end if;
        end if;
        if cardinality(p_lane) > 0 then
            for r in
                select * from queen.push_whole(p_origin, p_lanes, p_lane, p_last, p_nth, p_before, p_count, p_key_min, p_key_max,
                                               p_keys, p_body, p_plain_seg, p_plain_pos, p_plain_key)
            loop
                v_failed := v_failed or r.status > 0;
                kind := case when r.status = 0 then 0 else 2 end;
                error := r.error; lane := r.lane; first_seq := r.first_seq; created_at := r.created_at;
                seg := r.seg; status := r.status; pos := r.pos; dup_id := r.dup_id;
                return next;
            end loop;
            lane := null; first_seq := null; created_at := null;
            seg := null; status := null; pos := null; dup_id := null;
        end if;

        if cardinality(p_lane_id) > 0 then
            -- Lock first, then read: see queen.claim.
            if p_origin <> 0 then
                perform set_config('lock_timeout', '100ms', true);
            end if;
            perform c.num
               from queen.consumers c
              where c.num = any (array(
                    select k.num from unnest(p_lane_id, p_group) u(lane_id, grp)
                     cross join lateral (select c2.num from queen.lanes l
                                           join queen.consumers c2 on c2.lane = l.num and c2.grp = u.grp
                                          where l.id = u.lane_id offset 0) k))
              order by c.num for no key update;
            if p_origin <> 0 then
                perform set_config('lock_timeout', v_timeout, true);
            end if;
            v_now := clock_timestamp();

            if cardinality(p_required) > 0 then
                -- A group without a consumer on the partition has no lease to check and passes.
                for r in
                    select u.ord::int as grp
                      from unnest(p_lane_id, p_group, p_uniform, p_lease)
                           with ordinality u(lane_id, name, uniform, lease, ord)
                      join queen.lanes l on l.id = u.lane_id
                      join queen.consumers c on c.lane = l.num and c.grp = u.name
                      join lateral (
                           select * from (
                               (select * from queen.consumer_states_a a where a.consumer = c.num
                                 order by ver desc limit 1)
                               union all
                               (select * from queen.consumer_states_b b where b.consumer = c.num
                                 order by ver desc limit 1)
                           ) slots order by ver desc limit 1) st on true
                     where (st.lease = any (p_required) and st.lease_until > v_now) is not true
                       and not exists (select from queen.leased_holds(p_required) h
                                        where h.consumer = c.num and h.until > v_now and h.hold >= st.holds_from)
                       and case when u.uniform then u.lease is null
                                else exists (select from unnest(p_entry_group, p_entry_lease) e(grp, lease)
                                              where e.grp = u.ord and e.lease is null) end
                     order by u.ord
                loop
                    v_failed := true;
                    kind := 2; grp := r.grp; entry := null; why := 2;
                    error := 'Invalid or expired lease: none of requiredLeases holds the partition';
                    return next;
                end loop;
            end if;

            -- These lanes are locked already, so this does not wait.
            perform queen.ensure_consumers(array_agg(l.num), array_agg(u.grp))
               from unnest(p_lane_id, p_group) u(lane_id, grp)
               join queen.lanes l on l.id = u.lane_id
              where not exists (select from queen.consumers c where c.lane = l.num and c.grp = u.grp)
             having count(*) > 0;

            for r in
                select s.*, e.status
                  from queen.settle(p_origin, p_lane_id, p_group, p_ack_keys, p_uniform, p_lease,
                                      p_entry_group, p_entry_status, p_entry_lease, p_entry_error,
                                      p_entry_code, p_entry_worker, p_worker, true, p_required) s
                  left join (select u.grp, u.status,
                                    row_number() over (partition by u.grp order by u.ord) - 1 as entry
                               from unnest(p_entry_group, p_entry_status) with ordinality u(grp, status, ord)) e
                    on e.grp = s.grp and e.entry = s.entry
            loop
                kind := 1; error := null;
                grp := r.grp; entry := r.entry; why := r.why; released := r.released; dead := r.dead;
                queue_name := r.queue_name; lane_name := r.lane_name; lane := r.lane;
                consumer := r.consumer; more := r.more;
                if r.why = 0 and r.status > 2 then
                    why := 3;
                end if;
                if why > 0 then
                    v_failed := true;
                    kind := 2;
                    error := case why when 1 then 'Message not found'
                                      when 2 then 'Invalid or expired lease'
                                      when 4 then 'Message is waiting for its retry'
                                      when 5 then 'Message is not delivered'
                                      when 6 then 'Message is settled already'
                                      else 'Status not allowed in a transaction' end;
                end if;
                return next;
            end loop;
        end if;

        if v_failed then
            raise exception 'rolled back' using errcode = 'QN010';
        end if;
    exception when sqlstate 'QN010' then
        null; -- the returned rows contain the reason
    end;
end
$$;
