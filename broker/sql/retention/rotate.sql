-- queen.rotate: empty the slot that is not written any more, or switch slots.
--
-- needs: note_ages, latest_state
-- called by  broker/src/broker/chores.c (call "rotate"), by one broker at a time (queen.try_chores)
-- in         p_min_age: minimum time in seconds that a slot is written; p_bytes: minimum size
-- out        the action: 'switched', 'copied', 'emptied', 'waiting' or 'nothing'
--
-- Switching is one UPDATE. Writers that read the old name finish in the old slot. At least p_min_age later,
-- when none of them is left (which the SHARE lock ensures), every version that is still the newest of its consumer
-- is copied, and every open hold. The copy keeps its version number, so a concurrent writer of the next version does not conflict with it: no consumer is
-- locked, and a reader that finds both sees the same.
--
-- Some seconds later the old slot is truncated, which no open snapshot can prevent. Not at once: truncated rows disappear for older
-- snapshots, too, and these do not see the copies, nor anything else written since. pg_dump takes its snapshot first and locks
-- the tables a moment later. Of consumers whose version was truncated in that moment the dump would contain nothing. With the delay a
-- dump that began before the copy has its locks by then, and one that began after it contains the copy.
-- TRUNCATE gives up after a moment if the table is in use (a dump uses it until it ends), because pops queue behind it. The next
-- call tries again.
-- A writer that read the slot's name before the switch and writes only now would deadlock with it. p_min_age, a second or more,
-- ensures that there is none. (If one has written after the copy, its row is copied too, and the delay starts again.)
--
-- Receipts of streams have slots of their own, by the minute (queen.forget_receipts).
--
-- Readers of states must name both slots in the statement itself (or through the inlined
-- queen.latest_state). Then the tables are locked before the snapshot is taken, and a reader that finds a truncated slot
-- also sees the copy of its rows.
create or replace function queen.rotate(p_min_age int, p_bytes bigint)
returns text
language plpgsql
as $$
declare
    v_keep   interval := least(p_min_age, 10) * interval '1 second'; -- between copy and TRUNCATE
    v_active text;
    v_since  timestamptz;
    v_copied timestamptz;
    v_old    text;
    v_n      bigint;
    v_holds  bigint;
begin
    perform queen.forget_receipts();
    select active, switched_at, copied_at into v_active, v_since, v_copied from queen.rotation;
    if not found then -- the database was restored from a dump made while the table was rewritten (queen.rewrite_bloated_table)
        insert into queen.rotation default values on conflict do nothing;
        return 'nothing';
    end if;
    v_old := case when v_active = 'a' then 'b' else 'a' end;
    if clock_timestamp() < greatest(v_since + p_min_age * interval '1 second', v_copied + v_keep) then
        return 'nothing';
    elsif pg_relation_size(('queen.consumer_states_' || v_old)::regclass) > 0
       or pg_relation_size(('queen.holds_' || v_old)::regclass) > 0
       or pg_relation_size(('queen.changes_' || v_old)::regclass) > 0 then
        begin
            execute format('lock table queen.consumer_states_%1$s, queen.holds_%1$s, queen.changes_%1$s in share mode nowait',
                           v_old);
        exception when lock_not_available then
            return 'waiting';
        end;
        -- Walk the index from one consumer to the next, not through all versions: a slot that a long dump has kept from being
        -- emptied may contain millions.
        execute format(
            'insert into queen.consumer_states_%2$s
             with recursive newest as (
                 (select o.* from queen.consumer_states_%1$s o order by o.consumer desc, o.ver desc limit 1)
                  union all
                 select n.*
                   from newest w
                   cross join lateral (select o.* from queen.consumer_states_%1$s o where o.consumer < w.consumer
                                        order by o.consumer desc, o.ver desc limit 1) n)
             select w.consumer, w.ver, w.cursor_seq, w.lease_first, w.lease_last, w.total_messages, w.total_batches, w.last_at,
                    w.lease_at, w.lease_until, w.retry_at, w.batch_size, w.acked, w.retries, %2$L, w.lease, w.lease_text, w.acked_mask,
                    w.settled, w.past_lease, w.taken_seq, w.holds_from, w.walk_seq, w.swept_at, w.swept_seq, w.leased, w.leases_at, w.rate_at,
                    w.key_rate_at, w.expired, w.suspects_to, w.suspect_times
               from newest w
              where exists (select from queen.consumers c where c.num = w.consumer)
                and not exists (select from queen.consumer_states_%2$s n
                                 where n.consumer = w.consumer and n.ver >= w.ver)', v_old, v_active);
        get diagnostics v_n = row_count;
        -- The newest versions of the open holds of work queues, and the end of holds that were copied while they were open. Holds before
        -- walk_seq have ended.
        execute format(
            'insert into queen.holds_%2$s
             select o.consumer, o.first_seq, o.hold, o.ver, o.count, o.deliveries, o.retries, %2$L, o.at, o.until, o.lease, o.done
               from (with recursive holders (consumer) as (
                         (select k.consumer from queen.holds_%1$s k order by k.consumer limit 1)
                          union all
                         select (select k.consumer from queen.holds_%1$s k where k.consumer > holders.consumer order by k.consumer limit 1)
                           from holders where holders.consumer is not null)
                     select st.consumer, st.walk_seq, st.holds_from
                       from holders cross join lateral queen.latest_state(holders.consumer) st
                      where st.taken_seq is not null and st.batch_size > 0
                        and exists (select from queen.consumers x where x.num = holders.consumer)) c
               cross join lateral (select distinct on (k.first_seq, k.hold) k.* from queen.holds_%1$s k
                                    where k.consumer = c.consumer and k.first_seq >= c.walk_seq and k.hold >= c.holds_from
                                    order by k.first_seq, k.hold, k.ver desc) o
               left join lateral (select n.ver from queen.holds_%2$s n
                                   where n.consumer = o.consumer and n.first_seq = o.first_seq and n.hold = o.hold
                                   order by n.ver desc limit 1) n on true
              where case when o.until is null then n.ver < o.ver else coalesce(n.ver, 0) < o.ver end', v_old, v_active);
        get diagnostics v_holds = row_count;
        v_n := v_n + v_holds;
        -- The old slot is not written any more. Evaluate its changes for age limits before it is emptied.
        perform queen.note_ages(true);
        if v_n > 0 or v_copied is null then
            update queen.rotation set copied_at = clock_timestamp();
            return 'copied';
        end if;
        -- Changes that the statistics have not counted yet stay in the feed, unless no broker has counted for a while.
        update queen.stats_pass set seen = null where seen is not null and passed_at < now() - interval '10 minutes';
        begin
            set local lock_timeout = '50ms';
            execute format('lock table queen.consumer_states_%1$s, queen.holds_%1$s, queen.changes_%1$s in access exclusive mode', v_old);
            execute format(
                'insert into queen.changes_%2$s (xid, origin, slot, lanes)
                 select o.xid, o.origin, %2$L, o.lanes
                   from queen.changes_%1$s o
                   join queen.stats_pass p on o.xid >= pg_snapshot_xmin(p.seen) and not pg_visible_in_snapshot(o.xid, p.seen)
                  where o.xid < pg_snapshot_xmax(pg_current_snapshot())',
                v_old, v_active);
            execute format('truncate queen.consumer_states_%1$s, queen.holds_%1$s, queen.changes_%1$s', v_old);
        exception when lock_not_available or deadlock_detected then
            return 'waiting'; -- this block is rolled back, so that no change is counted twice
        end;
        update queen.rotation set emptied = emptied + 1, copied_at = null;
        return 'emptied';
    elsif pg_relation_size(('queen.consumer_states_' || v_active)::regclass)
        + pg_relation_size(('queen.holds_' || v_active)::regclass)
        + pg_relation_size(('queen.changes_' || v_active)::regclass) >= p_bytes then
        update queen.rotation set active = v_old::"char", switched_at = clock_timestamp();
        return 'switched';
    end if;
    return 'nothing';
end
$$;
