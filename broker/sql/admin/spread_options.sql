-- queen.spread_options: copy the options of a queue that its lanes keep to the lanes.
--
-- called by  a statement trigger on queen.queues (below), also for an UPDATE by hand
-- locks      lanes that differ, and lanes with skipped places, in num order
--
-- A lane with skipped places is careful whatever the queue says.  It is locked even if it looks right: the session that removes
-- its last skipped place (queen.mind_skips) may be copying the old options at this moment.
create or replace function queen.spread_options()
returns trigger
language plpgsql
as $$
declare
    v_lanes bigint[];
begin
    select array_agg(l.num) into v_lanes
      from (select l.num from queen.lanes l join changed q on q.id = l.queue_id
             where l.skipping
                or (l.lease_seconds, l.limited, l.careful, l.sealed)
                   is distinct from (q.lease_seconds, q.limited, q.careful, q.encryption_enabled)
             order by l.num for no key update of l) l;
    if v_lanes is not null then
        update queen.lanes l
           set lease_seconds = q.lease_seconds, limited = q.limited, careful = q.careful or l.skipping,
               sealed = q.encryption_enabled
          from queen.queues q
         where l.num = any (v_lanes) and q.id = l.queue_id;
    end if;
    return null;
end
$$;

create or replace trigger spread_options after update on queen.queues
    referencing new table as changed
    for each statement execute function queen.spread_options();
