-- queen.tidy: remove partitions that nobody uses, and history that is too old: one bounded step.
--
-- needs: rows_stuck
-- called by  src/broker/chores.c (call "tidy"); brokers may do so at the same time
-- in         p_idle_days: a partition without messages goes when nobody has used it for this long
--            p_history_days: rows of queen.retention_history are kept for this long; p_limit: how many of each at most
-- out        a row with queue_name null and more: call again; and per queue how many partitions went
-- locks      lanes, skipping those in use; by their trigger the consumers of deleted ones (queen.forget_lanes)
--
-- In use: created, pushed to, met or served by a group, its messages are retried, or it is one of a fixed set; a retry lane goes when
-- nothing is left on it
-- that its group has not done with.  lanes.active_at says when that was last known; a lane
-- is looked at when that is too long ago, and brought up to date: once in p_idle_days, not more.
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
    v_n      int;
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
        select array_agg(k.num order by k.num) into v_lanes
          from (select l.num from queen.lanes l where l.active_at < v_before
                 order by l.active_at limit p_limit for update skip locked) k;
    end if;
    if v_lanes is not null then
        -- A new statement sees all that those who held the locks before have done.
        with looked as materialized (
            select l.num, q.name,
                   case when waits.one or retried.one or q.partitions > 0 or (head.count > 0 and l.origin is null) or c.cursor_seq < head.last_seq
                        then clock_timestamp()
                        else greatest(l.created_at, head.created_at, c.used_at) end as used_at
              from queen.lanes l
              left join queen.queues q on q.id = l.queue_id
              left join lateral (select l.scheduling and exists (select from queen.scheduled w
                                                                   where w.lane = l.num)) waits(one) on true
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
        more := more or cardinality(v_lanes) >= p_limit;
    end if;
    return next;
    return query
    select u.name, count(*), null::boolean from unnest(v_names) u(name) group by u.name order by u.name;
end
$$;
