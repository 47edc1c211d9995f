-- queen.trim_metrics: remove old rows of metrics.
--
-- needs: try_chores, rows_stuck
-- called by  broker/src/broker/stats/record.c (call "trim_metrics"), every ten minutes; by one broker at a time (queen.try_chores)
-- in         p_days: older rows are removed; p_limit: maximum number of rows of each table in one call
-- out        the largest number of rows removed from one table: p_limit means that there is more
create or replace function queen.trim_metrics(p_days int, p_limit int)
returns bigint
language plpgsql
as $$
declare
    v_before timestamptz := clock_timestamp() - p_days * interval '1 day';
    v_gone   bigint;
    v_most   bigint := 0;
    t        record;
begin
    if not queen.try_chores() then
        return 0;
    end if;
    for t in
        select * from (values ('worker_metrics', 'at'), ('queue_lag_metrics', 'at'), ('queue_parked_replica', 'at'),
                              ('partition_changes', 'at'), ('owner_changes', 'at'), ('system_metrics', 'timestamp')) v(name, col)
    loop
        continue when queen.rows_stuck(('queen.' || t.name)::regclass) > 0;
        execute format('delete from queen.%1$I where ctid = any (array(select ctid from queen.%1$I where %2$I < $1
                                                                        order by %2$I limit $2))', t.name, t.col)
          using v_before, p_limit;
        get diagnostics v_gone = row_count;
        v_most := greatest(v_most, v_gone);
    end loop;
    return v_most;
end
$$;
