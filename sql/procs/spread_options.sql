-- queen.spread_options: what lanes keep of their queue follows the queue.
--
-- called by  a statement trigger on queen.queues (below), also for an UPDATE by hand
-- locks      lanes in num order
create or replace function queen.spread_options()
returns trigger
language plpgsql
as $$
declare
    v_lanes bigint[];
begin
    select array_agg(l.num) into v_lanes
      from (select l.num from queen.lanes l join changed q on q.id = l.queue_id
             where (l.lease_seconds, l.limited, l.careful, l.sealed)
                   is distinct from (q.lease_seconds, q.limited, q.careful or l.skipping, q.encryption_enabled)
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
