-- queen.changes_since: the lanes that other sessions have pushed to or released since the caller's last call.
--
-- needs: unseen_changes
-- called by  broker/src/broker/wake/feed.c (call "changes")
-- in         p_seen   the snapshot that the last call returned, or null for the first call
--            p_origin the caller's own number, whose changes are left out. Origins -1 to -3 are for queen.refresh_stats
-- out        a row with lane null: the snapshot to pass next time, and the number of times a slot was emptied. If that has
--            grown since the last call, rows may have been removed unread, and the caller must discover again. -1: the same, because
--            p_seen comes from a server that had later transactions.
--            Then the lanes with their queue. A retry lane is named "retry:" and its id, as in queen.discover. lane 0: everything
--            remembered about group lane_name on queue_name is out of date ('': on all queues, or all groups; queen.notify_group).
--            Exact for any commit order: the result is what the old snapshot did not see and the new one does.
create or replace function queen.changes_since(p_seen text, p_origin int)
returns table (snapshot text, lane bigint, lane_id uuid, lane_name text, queue_name text, emptied bigint)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_seen  pg_snapshot := p_seen;
    v_now   pg_snapshot;
    v_lanes bigint[];
    v_queues text[];
    v_groups text[];
begin
    -- One statement, hence one snapshot, which is returned.
    with fresh as materialized (select * from queen.unseen_changes(v_seen))
    select pg_current_snapshot(), (select r.emptied from queen.rotation r),
           array(select unnest(f.lanes) from fresh f where f.origin <> p_origin and f.origin not between -3 and -1),
           g.queues, g.groups
      into v_now, emptied, v_lanes, v_queues, v_groups
      from (select array_agg(c.queue_name) as queues, array_agg(c.grp) as groups
              from (select distinct f.queue_name, f.grp from fresh f where f.grp is not null) c) g;
    snapshot := v_now;
    if pg_snapshot_xmax(v_seen) > pg_snapshot_xmax(v_now) then
        emptied := -1;
    end if;
    return next;
    return query
    select null::text, 0::bigint, null::uuid, e.name, e.queue, null::bigint
      from unnest(v_queues, v_groups) e(queue, name);
    if v_lanes <> '{}' then
        return query
        select null::text, l.num, l.id, case when l.origin is null then l.name::text else 'retry:' || l.id end, q.name::text, null::bigint
          from queen.lanes l
          -- offset 0, here and elsewhere: a plan made when there was one queue must not become a scan of all queues.
          cross join lateral (select q.name from queen.queues q where q.id = coalesce(l.origin_queue, l.queue_id) offset 0) q
         where l.num = any (v_lanes);
    end if;
end
$$;
