-- queen.run_some_schedules: push recurring messages that are due, all or one of them.
--
-- needs: takes_partition, cron_next, cron_last, ensure_lanes, push_items, schedule_item
-- called by  queen.run_schedules
-- in         p_limit: maximum number of runs; p_only: this schedule; null: all
-- out        the number of runs; p_limit: call again at once
-- raises     whatever keeps one of them from running: an invalid time zone, an item that cannot be stored
-- locks      rows of schedules, skipping those of others; new lanes (queen.ensure_lanes), for which it waits at most 2 ms; lanes in num
--            order, skipping those of others; then as queen.push_items, which finds all of that locked
--
-- The run and the next time are one transaction, so a time runs once even after a crash. A time that is less than a minute late was
-- not missed. Of missed times, policy skip runs none, once the last, all each of them. A time whose partition another session
-- has locked, or is creating, was not missed either: it waits in delayed_at and runs when the partition is free. It is tried
-- again after a quarter of the time that it has waited (queen.fire_scheduled).
create or replace function queen.run_some_schedules(p_limit int, p_only uuid)
returns int
language plpgsql
as $$
declare
    v_now     timestamptz := clock_timestamp();
    v_due     queen.schedules[];
    s         queen.schedules;
    v_lane    bigint[];            -- of each; null: it does not or cannot exist
    v_mine    bigint[];            -- lanes that this call has locked
    v_timeout text := current_setting('lock_timeout');
    v_locked  int := 0;            -- lanes that others are creating
    v_more    boolean := false;
    v_at      timestamptz;
    v_items   jsonb[] := '{}';
    v_of      uuid[] := '{}';        -- their schedules
    v_ran     timestamptz[] := '{}'; -- their times
begin
    v_due := array(select n from queen.schedules n
                    where n.next_at <= v_now and (p_only is null or n.id = p_only) order by n.next_at limit p_limit for update skip locked);
    if v_due = '{}' then
        return 0;
    end if;

    select array_agg(l.num order by u.ord) into v_lane
      from generate_subscripts(v_due, 1) u(ord)
      left join lateral (select l.num from queen.queues q
                           join queen.lanes l on l.queue_id = q.id and l.name = (v_due[u.ord]).lane_name
                          where q.name = (v_due[u.ord]).queue_name offset 0) l on true;
    for i in 1 .. cardinality(v_due) loop
        s := v_due[i];
        continue when v_lane[i] is not null or not queen.takes_partition(s.queue_name, s.lane_name);
        if v_locked >= 10 then
            v_more := true; -- each has cost a wait: the next step continues with these
            exit;
        end if;
        begin
            perform set_config('lock_timeout', '2ms', true);
            v_lane[i] := (select nullif(e.lane, -1) from queen.ensure_lanes(array[s.queue_name], array[s.lane_name]) e);
            perform set_config('lock_timeout', v_timeout, true);
        exception when lock_not_available then
            v_lane[i] := 0;
            v_locked := v_locked + 1;
        end;
    end loop;
    v_mine := array(select l.num from queen.lanes l where l.num = any (v_lane) order by l.num for no key update skip locked);

    for i in 1 .. cardinality(v_due) loop
        s := v_due[i];
        v_at := coalesce(s.delayed_at, s.next_at);
        if v_lane[i] is null and queen.takes_partition(s.queue_name, s.lane_name) then
            continue; -- not examined in this step, or its queue is being deleted: it stays due
        elsif v_lane[i] is null then
            -- The queue was created again with a fixed set of partitions. An impossible message must not block the others. Its
            -- statistics show that it does not run.
            raise warning 'schedule "%": queue "%" has a fixed set of partitions and "%" is not one of them',
                s.name, s.queue_name, s.lane_name;
            v_at := queen.cron_next(s.cron, s.timezone, v_now);
        elsif v_lane[i] <> all (v_mine) then
            update queen.schedules n
               set delayed_at = v_at, next_at = v_now + least(greatest((v_now - v_at) / 4, interval '10 ms'), interval '1 s')
             where n.id = s.id;
            continue;
        elsif s.delayed_at is not null then
            v_items := v_items || queen.schedule_item(s, v_at);
            v_of := v_of || s.id;
            v_ran := v_ran || v_at;
            v_at := queen.cron_next(s.cron, s.timezone, v_at);
        end if;
        if v_at <= v_now - interval '1 minute' and s.missed = 'once' then
            v_at := queen.cron_last(s.cron, s.timezone, v_at, v_now);
        elsif v_at <= v_now - interval '1 minute' and s.missed = 'skip' then
            v_at := queen.cron_next(s.cron, s.timezone, v_now - interval '1 minute');
        end if;
        while v_at <= v_now and cardinality(v_items) < p_limit loop
            v_items := v_items || queen.schedule_item(s, v_at);
            v_of := v_of || s.id;
            v_ran := v_ran || v_at;
            v_at := queen.cron_next(s.cron, s.timezone, v_at);
        end loop;
        update queen.schedules n set next_at = v_at, delayed_at = null where n.id = s.id;
    end loop;
    if v_items <> '{}' then
        update queen.schedules n
           set last_run_at = r.at, last_message = r.message, runs = n.runs + r.n
          from (select v_of[p.idx + 1] as id, max(v_ran[p.idx + 1]) as at, count(*) as n,
                       (array_agg(p.message_id order by p.idx desc))[1] as message
                  from queen.push_items(array_to_json(v_items)::jsonb) p
                 group by 1) r
         where n.id = r.id;
    end if;
    return case when v_more then p_limit else cardinality(v_items) end;
end
$$;
