-- queen.trim_attempts: remove old history of failed and expired deliveries, one bounded step.
--
-- needs: rows_stuck
-- called by  broker/src/broker/chores.c (call "tidy"); brokers may call it at the same time
-- in         p_days: how long history is kept; p_limit: maximum number of rows
-- out        true: call again
create or replace function queen.trim_attempts(p_days int, p_limit int)
returns boolean
language plpgsql
as $$
declare
    v_n    int;
    v_more int;
begin
    if queen.rows_stuck('queen.attempts') > 0 then
        return false;
    end if;
    delete from queen.attempts a
     where a.ctid = any (array(select k.ctid from queen.attempts k
                                where k.at < clock_timestamp() - p_days * interval '1 day'
                                order by k.at limit p_limit for update skip locked));
    get diagnostics v_n = row_count;
    delete from queen.expired_leases e
     where e.ctid = any (array(select k.ctid from queen.expired_leases k
                                where k.expired_at < clock_timestamp() - p_days * interval '1 day'
                                order by k.expired_at limit p_limit - v_n for update skip locked));
    get diagnostics v_more = row_count;
    return v_n + v_more >= p_limit;
end
$$;
