-- queen.unseen_changes: rows of the feed that a snapshot did not see.
--
-- called by  queen.changes_since
-- in         p_seen   null: none are returned
-- out        columns as in queen.changes
--
-- By the index of each slot: what began after the snapshot, and one probe for each transaction that was under way.  So one that is
-- left open for hours costs a probe, and what came after it is not read again and again.  It becomes a part of the statement that
-- calls it (so: no settings, and not volatile).
--
-- A visible row whose transaction has not begun yet came with a dump of another server: it says nothing here.
create or replace function queen.unseen_changes(p_seen pg_snapshot)
returns table (origin int, lanes bigint[], queue_name text, grp text)
language sql stable
as $$
    select c.origin, c.lanes, c.queue_name::text, c.grp::text from queen.changes_a c
     where c.xid >= pg_snapshot_xmax(p_seen) and c.xid < pg_snapshot_xmax(pg_current_snapshot())
     union all
    select c.origin, c.lanes, c.queue_name::text, c.grp::text from queen.changes_b c
     where c.xid >= pg_snapshot_xmax(p_seen) and c.xid < pg_snapshot_xmax(pg_current_snapshot())
     union all
    select c.origin, c.lanes, c.queue_name::text, c.grp::text
      from pg_snapshot_xip(p_seen) open(xid)
     cross join lateral (select * from queen.changes_a a where a.xid = open.xid
                          union all
                         select * from queen.changes_b b where b.xid = open.xid offset 0) c
$$;
