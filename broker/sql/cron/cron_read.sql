-- queen.cron_read: check and parse a cron expression.
--
-- needs: cron_field
-- called by  queen.cron_next, queen.check_schedule
-- in         five fields (minute, hour, day of month, month, day of week; 0 and 7 are Sunday), six with seconds in front, or
--            @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly
-- out        one row; any_day: both days must match; otherwise (both are restricted) one of them is enough, as in cron
-- raises     QN001
create or replace function queen.cron_read(p_cron text)
returns table (seconds int[], minutes int[], hours int[], days int[], months int[], weekdays int[], any_day boolean)
language plpgsql immutable
as $$
declare
    v_text  text := case lower(trim(p_cron))
                        when '@yearly' then '0 0 1 1 *' when '@annually' then '0 0 1 1 *' when '@monthly' then '0 0 1 * *'
                        when '@weekly' then '0 0 * * 0' when '@daily' then '0 0 * * *' when '@midnight' then '0 0 * * *'
                        when '@hourly' then '0 * * * *' else trim(p_cron) end;
    f       text[] := regexp_split_to_array(v_text, '\s+');
begin
    if cardinality(f) = 5 then
        f := array['0'] || f;
    elsif cardinality(f) is distinct from 6 then
        raise exception 'cron must have five fields, or six with seconds in front' using errcode = 'QN001';
    end if;
    seconds := queen.cron_field(f[1], 0, 59, null, 'second');
    minutes := queen.cron_field(f[2], 0, 59, null, 'minute');
    hours := queen.cron_field(f[3], 0, 23, null, 'hour');
    days := queen.cron_field(f[4], 1, 31, null, 'day of the month');
    months := queen.cron_field(f[5], 1, 12, '{jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec}', 'month');
    weekdays := queen.cron_field(f[6], 0, 7, '{sun,mon,tue,wed,thu,fri,sat}', 'day of the week');
    if 7 = any (weekdays) then
        weekdays := array(select distinct n % 7 from unnest(weekdays) n order by 1);
    end if;
    any_day := left(f[4], 1) = '*' or left(f[6], 1) = '*';
    return next;
end
$$;
