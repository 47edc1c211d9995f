-- queen.rotate: empty the slot that is not written any more, or switch slots.
--
-- needs: note_ages
-- called by  broker/src/broker/chores.c (call "rotate"), by one broker at a time (queen.try_chores)
-- in         p_min_age: seconds a slot is written at least; p_bytes: and this many bytes
-- out        what was done: 'switched', 'copied', 'emptied', 'waiting' or 'nothing'
--
-- Switching is one UPDATE; writers that read the old name finish into the old slot.  At least p_min_age later,
-- when none of them is left (the SHARE lock says so), every version that is still the newest of its consumer
-- is copied over.  The copy keeps its version number, so it does not matter who writes the next one meanwhile: no consumer is
-- locked, and whoever meets both sees the same.
--
-- Some seconds later the old slot is truncated, which no open snapshot can hold back.  Why not at once: truncated rows are gone for snapshots
-- that were taken before, too, and for these the copies, and whatever else was written since, are not there yet.  pg_dump takes its snapshot
-- first and locks the tables a moment later: of consumers whose version was truncated in that moment the dump would have none.  Now a
-- dump that began before the copy has its locks by then, and one that began after it has the copy.
-- TRUNCATE gives up after a moment when somebody still uses the table (a dump does for as long as it takes), because pops wait behind it; it is
-- tried again at the next call.
-- A writer that reads the slot's name before the switch and writes only now would deadlock with it; p_min_age, a
-- second or more, is there to make sure that there is none.  (Should one have written after the copy, it is copied too, and the wait begins anew.)
--
-- Receipts of streams have slots of their own, by the minute (queen.forget_receipts).
--
-- Who reads states must name both slots in the statement itself (or through the inlined
-- queen.latest_state): then the tables are locked before the snapshot is taken, and a truncated slot comes
-- together with the copy of what it held.
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
begin
    perform queen.forget_receipts();
    select active, switched_at, copied_at into v_active, v_since, v_copied from queen.rotation;
    if not found then -- a copy of a database that was made while the row was written anew (queen.rewrite_bloated_table)
        insert into queen.rotation default values on conflict do nothing;
        return 'nothing';
    end if;
    v_old := case when v_active = 'a' then 'b' else 'a' end;
    if clock_timestamp() < greatest(v_since + p_min_age * interval '1 second', v_copied + v_keep) then
        return 'nothing';
    elsif pg_relation_size(('queen.consumer_states_' || v_old)::regclass) > 0
       or pg_relation_size(('queen.changes_' || v_old)::regclass) > 0 then
        begin
            execute format('lock table queen.consumer_states_%1$s, queen.changes_%1$s in share mode nowait',
                           v_old);
        exception when lock_not_available then
            return 'waiting';
        end;
        -- From one consumer to the next along the index, not through all of their versions: a slot that a long dump has kept from being
        -- emptied may hold millions.
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
                    w.lease_at, w.lease_until, w.retry_at, w.batch_size, w.acked, w.retries, %2$L, w.lease, w.lease_text, w.acked_mask
               from newest w
              where exists (select from queen.consumers c where c.num = w.consumer)
                and not exists (select from queen.consumer_states_%2$s n
                                 where n.consumer = w.consumer and n.ver >= w.ver)', v_old, v_active);
        get diagnostics v_n = row_count;
        -- Nobody writes to the old slot any more: what it tells about ages is taken over before it goes.
        perform queen.note_ages(true);
        if v_n > 0 or v_copied is null then
            update queen.rotation set copied_at = clock_timestamp();
            return 'copied';
        end if;
        -- What the statistics have not counted yet stays in the feed; if nobody counts, it is not kept for him.
        update queen.stats_pass set seen = null where seen is not null and passed_at < now() - interval '10 minutes';
        begin
            set local lock_timeout = '50ms';
            execute format('lock table queen.consumer_states_%1$s, queen.changes_%1$s in access exclusive mode', v_old);
            execute format(
                'insert into queen.changes_%2$s (xid, origin, slot, lanes)
                 select o.xid, o.origin, %2$L, o.lanes
                   from queen.changes_%1$s o
                   join queen.stats_pass p on o.xid >= pg_snapshot_xmin(p.seen) and not pg_visible_in_snapshot(o.xid, p.seen)
                  where o.xid < pg_snapshot_xmax(pg_current_snapshot())',
                v_old, v_active);
            execute format('truncate queen.consumer_states_%1$s, queen.changes_%1$s', v_old);
        exception when lock_not_available or deadlock_detected then
            return 'waiting'; -- and nothing of this block is done: what is in the feed must not be told twice
        end;
        update queen.rotation set emptied = emptied + 1, copied_at = null;
        return 'emptied';
    elsif pg_relation_size(('queen.consumer_states_' || v_active)::regclass)
        + pg_relation_size(('queen.changes_' || v_active)::regclass) >= p_bytes then
        update queen.rotation set active = v_old::"char", switched_at = clock_timestamp();
        return 'switched';
    end if;
    return 'nothing';
end
$$;
