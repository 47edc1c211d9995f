-- queen.unseen_changes: rows of the change feed that a snapshot did not see.
--
-- called by  queen.changes_since
-- in         p_seen   null: no rows are returned
-- out        columns as in queen.changes
--
-- Uses the index of each slot: a range for transactions that began after the snapshot, and one probe for each transaction that was in
-- progress. So a transaction that stays open for hours costs one probe, and later rows are not read repeatedly. PostgreSQL inlines
-- this function into the calling statement (so: no settings, and not volatile).
--
-- A visible row whose transaction has not begun yet came with a dump of another server and is ignored.
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
