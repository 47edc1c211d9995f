-- queen.changes_since: lanes that others have pushed to or set free since the caller last looked.
--
-- called by  src/broker/feed.c (call "changes")
-- in         p_seen   the snapshot that the last call returned, or null at first
--            p_origin the caller's own number: it knows of its own doings.  Origins -1 to -3 are for queen.refresh_stats
-- out        a row with lane null: the snapshot to pass next time, and how often a slot was emptied (if that has
--            grown since the last call, rows may be gone unread: discover again); and the lanes
--            with their queue (a retry lane is named "retry:" and its id, as by queen.discover); lane 0: all that is known of group lane_name on queue_name is out of date ('': on all
--            queues, or all groups; queen.tell_group).  Exact, whatever order transactions commit in: what is returned is what the
--            old snapshot did not see and the new one does.
create or replace function queen.changes_since(p_seen text, p_origin int)
returns table (snapshot text, lane bigint, lane_id uuid, lane_name text, queue_name text, emptied bigint)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_seen  pg_snapshot := p_seen;
    v_from  xid8 := pg_snapshot_xmin(v_seen);
    v_now   pg_snapshot;
    v_lanes bigint[];
    v_queues text[];
    v_groups text[];
begin
    -- One statement, so one snapshot: the one that is returned.  Each slot by its own index, from the
    -- first transaction that the old snapshot did not know to be over.
    select pg_current_snapshot(), (select r.emptied from queen.rotation r), array(
               select unnest(c.lanes) from queen.changes_a c
                where c.xid >= v_from and c.origin <> p_origin and c.origin not between -3 and -1
                  and not pg_visible_in_snapshot(c.xid, v_seen))
            || array(
               select unnest(c.lanes) from queen.changes_b c
                where c.xid >= v_from and c.origin <> p_origin and c.origin not between -3 and -1
                  and not pg_visible_in_snapshot(c.xid, v_seen))
         , g.queues, g.groups
      into v_now, emptied, v_lanes, v_queues, v_groups
      from (select array_agg(c.queue_name) as queues, array_agg(c.grp) as groups
              from (select c.queue_name, c.grp from queen.changes_a c
                     where c.xid >= v_from and c.grp is not null and not pg_visible_in_snapshot(c.xid, v_seen)
                     union
                    select c.queue_name, c.grp from queen.changes_b c
                     where c.xid >= v_from and c.grp is not null and not pg_visible_in_snapshot(c.xid, v_seen)) c) g;
    snapshot := v_now;
    return next;
    return query
    select null::text, 0::bigint, null::uuid, e.name, e.queue, null::bigint
      from unnest(v_queues, v_groups) e(queue, name);
    if v_lanes <> '{}' then
        return query
        select null::text, l.num, l.id, case when l.origin is null then l.name::text else 'retry:' || l.id end, q.name::text, null::bigint
          from queen.lanes l
          join queen.queues q on q.id = coalesce(l.origin_queue, l.queue_id)
         where l.num = any (v_lanes);
    end if;
end
$$;
