-- queen.trim_audit: remove old records of the audit log, one bounded step.
--
-- needs: rows_stuck
-- called by  broker/src/broker/chores.c (call "tidy"); brokers may call it at the same time
-- in         p_days: how long records are kept; p_limit: maximum number of rows
-- out        true: call again
create or replace function queen.trim_audit(p_days int, p_limit int)
returns boolean
language plpgsql
as $$
declare
    v_n int;
begin
    if queen.rows_stuck('queen.audit') > 0 then
        return false;
    end if;
    delete from queen.audit a
     where a.id = any (array(select k.id from queen.audit k
                              where k.at < clock_timestamp() - p_days * interval '1 day'
                              order by k.at limit p_limit for update skip locked));
    get diagnostics v_n = row_count;
    return v_n >= p_limit;
end
$$;
