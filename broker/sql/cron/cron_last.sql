-- queen.cron_last: the last run of a cron expression from p_first, which is a run, to a time.
--
-- needs: cron_next
-- called by  queen.run_schedules
create or replace function queen.cron_last(p_cron text, p_zone text, p_first timestamptz, p_until timestamptz)
returns timestamptz
language plpgsql stable
as $$
declare
    v_window interval;
    v_at     timestamptz := p_first;
    v_next   timestamptz;
begin
    -- There may be years of runs: first find an interval before the end that contains some.
    foreach v_window in array array['1 minute', '1 hour', '1 day', '31 days', '366 days']::interval[] loop
        v_next := queen.cron_next(p_cron, p_zone, p_until - v_window);
        if v_next <= p_until and v_next > p_first then
            v_at := v_next;
            exit;
        end if;
    end loop;
    loop
        v_next := queen.cron_next(p_cron, p_zone, v_at);
        exit when v_next is null or v_next > p_until;
        v_at := v_next;
    end loop;
    return v_at;
end
$$;
