-- queen.tidy: remove unused partitions and old history, one bounded step.
--
-- needs: rows_stuck
-- called by  broker/src/broker/chores.c (call "tidy"); brokers may call it at the same time
-- in         p_idle_days: a partition without messages is removed if it was not used for this long
--            p_history_days: how long rows of queen.retention_history are kept; p_limit: maximum number of each
-- out        a row with queue_name null and more: call again; and per queue the number of removed partitions
-- locks      lanes, skipping those in use; for retry lanes also their consumers and the group's consumer of the partition, skipping those
--            that are locked: such a session may be adding a retry (queen.retry_lane). Through a trigger the consumers of
--            deleted lanes (queen.forget_lanes)
--
-- A partition is in use if it was created, pushed to, or examined or served for a group, if scheduled messages or retries wait for it,
-- or if it belongs to a fixed set. A retry lane is removed if no retry waits for it and its group has consumed everything on
-- it. lanes.active_at is the last known use. A lane is examined if that is too long ago, at most once in p_idle_days.
create or replace function queen.tidy(p_idle_days int, p_history_days int, p_limit int)
returns table (queue_name text, removed bigint, more boolean)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_before timestamptz := clock_timestamp() - p_idle_days * interval '1 day';
    v_lanes  bigint[];
    v_names  text[];
    v_gone   bigint[];
    v_of     bigint[]; -- retry lanes, ...
    v_wanted bigint[]; -- ... the consumers to be locked with each, ...
    v_got    bigint[]; -- ... and those of them that this call has locked
    v_n      int;
    v_found  int;
begin
    more := false;
    if queen.rows_stuck('queen.retention_history') = 0 then
        delete from queen.retention_history
         where id = any (array(select h.id from queen.retention_history h
                                where h.executed_at < clock_timestamp() - p_history_days * interval '1 day'
                                order by h.executed_at limit p_limit));
        get diagnostics v_n = row_count;
        more := v_n >= p_limit;
    end if;

    if queen.rows_stuck('queen.lanes') = 0 and queen.rows_stuck('queen.segments') = 0 then
        select array_agg(k.num order by k.num), count(*) into v_lanes, v_found
          from (select l.num from queen.lanes l where l.active_at < v_before
                 order by l.active_at limit p_limit for update skip locked) k;
    end if;
    if v_lanes is not null then
        select array_agg(r.num), array_agg(c.num) into v_of, v_wanted
          from queen.lanes r
          cross join lateral (select c.num from queen.consumers c where c.lane = r.num
                               union all
                              select c.num from queen.consumers c where c.lane = r.origin and c.grp = r.name) c
         where r.num = any (v_lanes) and r.origin is not null;
        if v_wanted is not null then
            v_got := array(select c.num from queen.consumers c
                            where c.num = any (v_wanted) order by c.num for update skip locked);
            v_lanes := array(select k.num from unnest(v_lanes) k(num)
                              where k.num not in (select w.lane from unnest(v_of, v_wanted) w(lane, num)
                                                   where w.num <> all (v_got)));
        end if;
        -- A new statement sees everything that earlier owners of the locks have done.
        with looked as materialized (
            select l.num, q.name,
                   case when waits.one or retried.one or q.partitions > 0 or (head.count > 0 and l.origin is null) or c.cursor_seq < head.last_seq
                        then clock_timestamp()
                        else greatest(l.created_at, head.created_at, c.used_at) end as used_at
              from queen.lanes l
              left join queen.queues q on q.id = l.queue_id
              left join lateral (select (l.scheduling or l.origin is not null)
                                        and exists (select from queen.scheduled w where w.lane = l.num)) waits(one) on true
              left join lateral (select exists (select from queen.lanes r where r.origin = l.num)
                                        or (l.origin is not null and exists (select from queen.dead_letter_queue d
                                                                              where d.lane = l.num))) retried(one) on true
              left join lateral (select s.count, s.created_at, s.first_seq + s.count - 1 as last_seq from queen.segments s
                                  where s.lane = l.num order by s.first_seq desc limit 1) head on true
              left join lateral (
                   select max(greatest(c.created_at, st.last_at)) as used_at, min(st.cursor_seq) as cursor_seq
                     from queen.consumers c
                     left join lateral (
                          (select a.ver, a.last_at, a.cursor_seq from queen.consumer_states_a a
                            where a.consumer = c.num order by a.ver desc limit 1)
                          union all
                          (select b.ver, b.last_at, b.cursor_seq from queen.consumer_states_b b
                            where b.consumer = c.num order by b.ver desc limit 1)
                          order by ver desc limit 1) st on true
                    where c.lane = l.num) c on true
             where l.num = any (v_lanes)
        ), kept as (
            update queen.lanes l set active_at = k.used_at
              from looked k where l.num = k.num and k.used_at >= v_before
        )
        select array_agg(k.num), array_agg(k.name::text) filter (where k.name is not null) into v_gone, v_names
          from looked k where k.used_at < v_before;
        delete from queen.lanes where num = any (v_gone);
        more := more or (v_found >= p_limit and v_lanes <> '{}'); -- locked lanes are left for the next call
    end if;
    return next;
    return query
    select u.name, count(*), null::boolean from unnest(v_names) u(name) group by u.name order by u.name;
end
$$;
