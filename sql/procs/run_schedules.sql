-- queen.run_schedules: recurring messages whose time has come: one bounded step.
--
-- needs: takes_partition, cron_next, cron_last, push_items_2, schedule_item
-- called by  queen.fire_due, which delivers them
-- in         p_limit: runs at most
-- out        how many ran
-- locks      rows of schedules, skipping those of others; then as queen.push_items_2, once for all of them
--
-- The run and the next time are one transaction: a time runs once, whatever dies.  What is less than a minute late was not missed.
-- Of times that were, policy skip runs none, once the last, all each of them.
create or replace function queen.run_schedules(p_limit int)
returns int
language plpgsql
as $$
declare
    s       queen.schedules;
    v_now   timestamptz := clock_timestamp();
    v_at    timestamptz;
    v_items jsonb[] := '{}';
    v_of    uuid[] := '{}';        -- whose they are
    v_ran   timestamptz[] := '{}'; -- the times that they are for
begin
    for s in
        select n.* from queen.schedules n
         where n.next_at <= v_now
         order by n.next_at limit p_limit for update skip locked
    loop
        v_at := s.next_at;
        if v_at <= v_now - interval '1 minute' and s.missed = 'once' then
            v_at := queen.cron_last(s.cron, s.timezone, v_at, v_now);
        elsif v_at <= v_now - interval '1 minute' and s.missed = 'skip' then
            v_at := queen.cron_next(s.cron, s.timezone, v_now - interval '1 minute');
        end if;
        if not queen.takes_partition(s.queue_name, s.lane_name) then
            -- The queue was made anew with a fixed set.  One message that cannot be must not hold up the others; that it does
            -- not run is seen by its figures.
            raise warning 'schedule "%": queue "%" has a fixed set of partitions, and "%" is none of them',
                s.name, s.queue_name, s.lane_name;
            v_at := queen.cron_next(s.cron, s.timezone, v_now);
        end if;
        while v_at <= v_now and cardinality(v_items) < p_limit loop
            v_items := v_items || queen.schedule_item(s, v_at);
            v_of := v_of || s.id;
            v_ran := v_ran || v_at;
            v_at := queen.cron_next(s.cron, s.timezone, v_at);
        end loop;
        update queen.schedules n set next_at = v_at where n.id = s.id;
    end loop;
    if v_items = '{}' then
        return 0;
    end if;
    update queen.schedules n
       set last_run_at = r.at, last_message = r.message, runs = n.runs + r.n
      from (select v_of[p.idx + 1] as id, max(v_ran[p.idx + 1]) as at, count(*) as n,
                   (array_agg(p.message_id order by p.idx desc))[1] as message
              from queen.push_items_2(array_to_json(v_items)::jsonb) p
             group by 1) r
     where n.id = r.id;
    return cardinality(v_items);
end
$$;
