-- queen.changes_since: lanes that others have pushed to since the caller last looked.
--
-- called by  src/broker/feed.c (call "changes")
-- in         p_seen   the snapshot that the last call returned, or null at first
--            p_origin the caller's own number: it knows of its own pushes
-- out        always a first row with lane null: the snapshot to pass next time; then the lanes
--            with their queue.  Exact, whatever order transactions commit in: what is returned is what the
--            old snapshot did not see and the new one does.
create or replace function queen.changes_since(p_seen text, p_origin int)
returns table (snapshot text, lane bigint, lane_id uuid, lane_name text, queue_name text)
language sql volatile
as $$
    with fresh as materialized (
        select distinct n.lane
          from (select xid, origin, lanes from queen.changes_a
                 where xid >= pg_snapshot_xmin(p_seen::pg_snapshot)::text::xid8
                 union all
                select xid, origin, lanes from queen.changes_b
                 where xid >= pg_snapshot_xmin(p_seen::pg_snapshot)::text::xid8) c
          cross join lateral unnest(c.lanes) n(lane)
         where c.origin <> p_origin
           and not pg_visible_in_snapshot(c.xid, p_seen::pg_snapshot))
    select pg_current_snapshot()::text, null::bigint, null::uuid, null::text, null::text
     union all
    select null, f.lane, l.id, l.name, q.name
      from fresh f
      join queen.lanes l on l.num = f.lane
      join queen.queues q on q.id = l.queue_id
$$;
