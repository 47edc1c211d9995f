-- queen.note_ages: add lanes that were pushed to, and whose queue has an age limit, to queen.lane_due.
--
-- called by  queen.sweep; queen.rotate before it empties a slot of the feed
-- locks      the row of queen.sweeps: if another session has locked it, that session does the work and this call does nothing,
--            unless p_wait
--
-- Reads the rows added to the change feed since the last call, by the snapshot in queen.sweeps (as in queen.changes_since), and
-- nothing while no queue has an age limit. A lane that is in the table already stays unchanged, because its oldest message is known.
--
-- A database restored from a dump may contain the snapshot of another server, or none (queen.rewrite_bloated_table). Then it is unknown
-- which rows have been read, and every lane whose queue has an age limit is added.
create or replace function queen.note_ages(p_wait boolean)
returns void
language plpgsql
as $$
declare
    v_text   text;
    v_seen   pg_snapshot;
    v_copied boolean := false; -- the snapshot is from another server
    v_from   xid8;
    v_now    pg_snapshot;
    v_lanes  bigint[];
begin
    if p_wait then
        select w.seen into v_text from queen.sweeps w for update;
    else
        select w.seen into v_text from queen.sweeps w for update skip locked;
    end if;
    if v_text is null then
        if exists (select from queen.sweeps) then
            return;
        end if;
        insert into queen.sweeps default values on conflict do nothing;
        v_copied := true;
    end if;
    v_seen := v_text;
    v_from := pg_snapshot_xmin(v_seen);
    v_copied := v_copied or pg_snapshot_xmax(v_seen) > pg_snapshot_xmax(pg_current_snapshot());
    -- One statement, hence one snapshot, which is stored.
    select pg_current_snapshot(),
           case when v_copied then array(select l.num from queen.lanes l join queen.queues q on q.id = l.queue_id where q.ages)
                when exists (select from queen.queues q where q.ages) then array(
               select unnest(c.lanes) from queen.changes_a c
                where c.xid >= v_from and c.xid < pg_snapshot_xmax(pg_current_snapshot()) and c.origin not between -3 and -1 and not pg_visible_in_snapshot(c.xid, v_seen)
                union
               select unnest(c.lanes) from queen.changes_b c
                where c.xid >= v_from and c.xid < pg_snapshot_xmax(pg_current_snapshot()) and c.origin not between -3 and -1 and not pg_visible_in_snapshot(c.xid, v_seen)) end
      into v_now, v_lanes;

    if cardinality(v_lanes) > 0 then
        insert into queen.lane_due as d (lane, evict_at, retain_at)
        select l.num, front.created_at + k.evict * interval '1 second', front.created_at + k.retain * interval '1 second'
          from unnest(v_lanes) u(num)
          join queen.lanes l on l.num = u.num
          join queen.queues q on q.id = l.queue_id and q.ages
          cross join lateral (
               select least(case when q.ttl_acts then q.ttl end, nullif(q.max_wait_time_seconds, 0)) as evict,
                      case when q.retention_enabled then least(nullif(q.retention_seconds, 0),
                                                               nullif(q.completed_retention_seconds, 0)) end as retain) k
          cross join lateral (select s.created_at from queen.segments s
                               where s.lane = l.num and s.count > 0 order by s.first_seq limit 1) front
         where not exists (select from queen.lane_due e
                            where e.lane = l.num and (e.evict_at is not null or k.evict is null)
                              and (e.retain_at is not null or k.retain is null) offset 0)
         order by l.num
            on conflict (lane) do update
           set evict_at = coalesce(d.evict_at, excluded.evict_at), retain_at = coalesce(d.retain_at, excluded.retain_at);
    end if;
    if cardinality(v_lanes) > 0 or v_copied then
        update queen.sweeps set seen = v_now::text;
    end if;
end
$$;
