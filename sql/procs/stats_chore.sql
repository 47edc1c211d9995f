-- queen.stats_chore: the statistics pass in the background.
--
-- needs: refresh_stats, rows_stuck
-- called by  src/broker/figures.c (call "stats_chore") of every process; whoever comes when it is due does it
-- in         p_interval_ms, p_reconcile_ms: periods; p_keep_days: age limit of the history
-- out        lanes counted; null when it was not due or somebody else is at it
--
-- A table of the pass that holds far more dead rows than live ones, because some transaction keeps vacuum from removing
-- them, is written anew.  Its readers lock it before they take their snapshot (statements of volatile functions do),
-- so none finds it empty.
create or replace function queen.stats_chore(p_interval_ms int, p_reconcile_ms int, p_keep_days int)
returns int
language plpgsql
as $$
declare
    p           queen.stats_pass%rowtype;
    v_lanes     int;
    v_reconcile boolean;
    v_table     text;
begin
    select * into p from queen.stats_pass;
    v_reconcile := coalesce(p.reconciled_at < clock_timestamp() - p_reconcile_ms * interval '1 millisecond', true);
    if not v_reconcile and p.passed_at > clock_timestamp() - p_interval_ms * interval '0.8 milliseconds' then
        return null;
    end if;
    select r.lanes into v_lanes from queen.refresh_stats(null, v_reconcile) r;
    if v_lanes is null then
        return null;
    end if;
    if v_reconcile then
        if queen.rows_stuck('queen.stats_history') = 0 then
            delete from queen.stats_history h
             where h.ctid = any (array(select o.ctid from queen.stats_history o
                                        where o.bucket_time < clock_timestamp() - p_keep_days * interval '1 day'
                                        order by o.bucket_time limit 20000));
        end if;
        foreach v_table in array array['lane_stats', 'consumer_stats', 'stats'] loop
            if pg_relation_size(('queen.' || v_table)::regclass) > 16 * 1048576
               and pg_stat_get_dead_tuples(('queen.' || v_table)::regclass)
                   > 3 * pg_stat_get_live_tuples(('queen.' || v_table)::regclass) then
                begin
                    set local lock_timeout = '200ms';
                    execute format('lock table queen.%I in access exclusive mode', v_table);
                    execute format('create temp table rewritten on commit drop as table queen.%I', v_table);
                    execute format('truncate queen.%I', v_table);
                    execute format('insert into queen.%I table rewritten', v_table);
                    drop table rewritten;
                exception when lock_not_available then
                    null; -- somebody reads it: next time
                end;
            end if;
        end loop;
    end if;
    return v_lanes;
end
$$;
