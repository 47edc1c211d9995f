-- queen.spread_options: record that the options of queues have changed, and begin to copy them to the partitions.
--
-- needs: spread_step, step_lanes
-- called by  a statement trigger on queen.queues (below), also for an UPDATE by hand
-- effects    does the work for queen.step_lanes() partitions.  POST /api/v1/configure does the rest before it answers
--            (queen.spread_queue); after an UPDATE by hand, or if that broker dies, the brokers' chore does (queen.spread_more)
-- locks      rows of configuring by queue; then as queen.spread_step, without waiting
create or replace function queen.spread_options()
returns trigger
language plpgsql
as $$
declare
    v_left  int := queen.step_lanes();
    v_queue uuid;
begin
    for v_queue in
        insert into queen.configuring as s (queue_id, ages)
        select n.id, n.ages and (n.ttl_acts, n.ttl, n.max_wait_time_seconds, n.retention_enabled, n.retention_seconds,
                                 n.completed_retention_seconds)
                                is distinct from
                                (o.ttl_acts, o.ttl, o.max_wait_time_seconds, o.retention_enabled, o.retention_seconds,
                                 o.completed_retention_seconds)
          from changed n join was o on o.id = n.id
         where n is distinct from o
         order by n.id
            on conflict (queue_id) do update set after = null, looked = false, locked = '{}', ages = s.ages or excluded.ages
        returning s.queue_id
    loop
        exit when v_left <= 0;
        v_left := v_left - (select t.looked_at from queen.spread_step(v_queue, v_left, false) t);
    end loop;
    return null;
end
$$;

create or replace trigger spread_options after update on queen.queues
    referencing old table as was new table as changed
    for each statement execute function queen.spread_options();
