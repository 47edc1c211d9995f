-- queen.stats_chore: the background pass of the statistics.
--
-- needs: refresh_stats, rows_stuck, rewrite_bloated_table, pace_vacuum
-- called by  broker/src/broker/stats/stats.c (call "stats_chore") of every process; the first caller after it is due does it
-- in         p_interval_ms, p_reconcile_ms: periods; p_keep_days: age limit of the history
-- out        one row: lanes counted, and whether changed lanes are left to the next pass, which is then due at once;
--            no row if it was not due or another session is doing it
--
-- While vacuum cannot reclaim dead rows, it also rewrites small tables that are mostly dead rows, one at a time
-- (queen.rewrite_bloated_table), and throttles autovacuum (queen.pace_vacuum).
create or replace function queen.stats_chore(p_interval_ms int, p_reconcile_ms int, p_keep_days int)
returns table (lanes int, more boolean)
language plpgsql
as $$
#variable_conflict use_column
declare
    p           queen.stats_pass%rowtype;
    v_lanes     int;
    v_reconcile boolean;
begin
    select * into p from queen.stats_pass;
    v_reconcile := coalesce(p.reconciled_at < clock_timestamp() - p_reconcile_ms * interval '1 millisecond', true);
    if not v_reconcile and p.passed_at > clock_timestamp() - p_interval_ms * interval '0.8 milliseconds'
       and not exists (select from queen.stats_pending) then
        return;
    end if;
    select r.lanes into v_lanes from queen.refresh_stats(null, v_reconcile) r;
    if v_lanes is null then
        return;
    end if;
    if v_reconcile then
        if queen.rows_stuck('queen.stats_history') = 0 then
            delete from queen.stats_history h
             where h.ctid = any (array(select o.ctid from queen.stats_history o
                                        where o.bucket_time < clock_timestamp() - p_keep_days * interval '1 day'
                                        order by o.bucket_time limit 20000));
        end if;
        perform queen.rewrite_bloated_table();
        perform queen.pace_vacuum();
    end if;
    return query select v_lanes, exists (select from queen.stats_pending);
end
$$;
