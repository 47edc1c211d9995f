-- queen.cron_next: the first run of a cron expression after a time; null if there is none within nine years.
--
-- needs: cron_read, wall_time
-- called by  queen.create_schedule, queen.change_schedule, queen.run_schedules, queen.cron_last
-- in         p_zone: an IANA time zone of PostgreSQL
--
-- The expression is in local time. A local time that does not exist, because clocks are set forward, stands for the first
-- moment after the gap. One that occurs twice stands for the first of the two. Two local times that become the same
-- moment are one run.
create or replace function queen.cron_next(p_cron text, p_zone text, p_after timestamptz)
returns timestamptz
language plpgsql stable
as $$
declare
    c       record;
    v_wall  timestamp := p_after at time zone p_zone;
    v_day   date;
    v_last  date;
    v_month boolean; -- the day of the month matches
    v_week  boolean; -- the day of the week matches
    v_hour  timestamp;
    v_min   timestamp;
    h       int;
    m       int;
    s       int;
    v_at    timestamptz;
begin
    select * into c from queen.cron_read(p_cron);
    -- If clocks were changed recently, local times may repeat, or stand for a time in the gap: start earlier.
    if v_wall - (p_after - interval '3 hours') at time zone p_zone <> interval '3 hours' then
        v_wall := v_wall - interval '3 hours';
    end if;
    v_day := v_wall::date;
    v_last := v_day + 3300;
    while v_day <= v_last loop
        if not extract(month from v_day)::int = any (c.months) then
            v_day := (date_trunc('month', v_day) + interval '1 month')::date;
            continue;
        end if;
        v_month := extract(day from v_day)::int = any (c.days);
        v_week := extract(dow from v_day)::int = any (c.weekdays);
        if (v_month and v_week) or ((v_month or v_week) and not c.any_day) then
            foreach h in array c.hours loop
                v_hour := v_day + h * interval '1 hour';
                continue when v_hour + interval '1 hour' <= v_wall;
                foreach m in array c.minutes loop
                    v_min := v_hour + m * interval '1 minute';
                    continue when v_min + interval '1 minute' <= v_wall;
                    foreach s in array c.seconds loop
                        continue when v_min + s * interval '1 second' < v_wall;
                        v_at := queen.wall_time(v_min + s * interval '1 second', p_zone);
                        if v_at > p_after then
                            return v_at;
                        end if;
                    end loop;
                end loop;
            end loop;
        end if;
        v_day := v_day + 1;
    end loop;
    return null;
end
$$;
