-- queen.forget_consumers: remove unused consumers that have no position, one bounded step.
--
-- needs: unused_consumers, rows_stuck
-- called by  broker/src/broker/chores.c (call "forget_consumers"); brokers may call it at the same time
-- in         p_after: the step examines consumers with larger numbers; p_idle_days: younger rows stay; p_limit: number of rows
--            to examine
-- out        next: p_after of the next step, 0 after the last consumer; removed: number of consumers removed
-- effects    after the last consumer also removes old watermarks. Recorded subscriptions stay, so a group that returns
--            starts where it would have started
-- locks      consumers by num, skipping those of other sessions: never waits
create or replace function queen.forget_consumers(
    p_after bigint, p_idle_days int, p_limit int, out next bigint, out removed bigint)
language plpgsql
as $$
declare
    v_before timestamptz := clock_timestamp() - p_idle_days * interval '1 day';
    v_some   bigint[];
begin
    next := 0;
    removed := 0;
    if queen.rows_stuck('queen.consumers') > 0 then
        return;
    end if;
    v_some := array(select c.num from queen.consumers c where c.num > p_after order by c.num limit p_limit);
    if cardinality(v_some) >= p_limit then
        next := v_some[p_limit];
    end if;
    v_some := array(select u.consumer from queen.unused_consumers(v_some, v_before) u);
    if v_some <> '{}' then
        v_some := array(select c.num from queen.consumers c where c.num = any (v_some) order by c.num for update skip locked);
        -- A new statement sees everything that earlier owners of the locks have done.
        v_some := array(select u.consumer from queen.unused_consumers(v_some, v_before) u);
        delete from queen.consumers c where c.num = any (v_some);
        get diagnostics removed = row_count;
        delete from queen.consumer_states s where s.consumer = any (v_some);
    end if;
    if next = 0 then
        delete from queen.consumer_watermarks w
         where w.ctid = any (array(select k.ctid from queen.consumer_watermarks k
                                    where k.updated_at < v_before limit p_limit for update skip locked));
    end if;
end
$$;
