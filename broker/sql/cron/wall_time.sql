-- queen.wall_time: the moment when the clocks of a zone first show a local time; if they skip it, the first
-- moment after the gap.
--
-- called by  queen.cron_next
create or replace function queen.wall_time(p_time timestamp, p_zone text)
returns timestamptz
language plpgsql stable
as $$
declare
    v_at     timestamptz := p_time at time zone p_zone;
    v_before interval := (v_at - interval '1 day') at time zone p_zone - (v_at - interval '1 day') at time zone 'UTC';
    v_early  timestamptz := (p_time - v_before) at time zone 'UTC'; -- as if clocks had not changed since yesterday
    v_low    timestamptz;
    v_high   timestamptz;
    v_middle timestamptz;
begin
    if v_early at time zone p_zone = p_time then
        return v_early; -- the usual case, and the first of two
    elsif v_at at time zone p_zone = p_time then
        return v_at;
    end if;
    -- In the gap: find the moment when the clocks were set forward.
    v_low := least(v_at, v_early) - interval '3 hours';
    v_high := greatest(v_at, v_early) + interval '3 hours';
    while v_high - v_low > interval '1 second' loop
        v_middle := date_trunc('second', v_low + (v_high - v_low) / 2);
        if v_middle at time zone p_zone < p_time then
            v_low := v_middle;
        else
            v_high := v_middle;
        end if;
    end loop;
    return v_high;
end
$$;
