-- queen.time_range: the time range of a report and the width of its buckets.
--
-- needs: param_time, iso_ms
-- called by  the functions behind broker/src/api/monitoring/analytics.c
-- in         p_args.from (default: an hour ago), p_args.to (default: now)
-- out        first: the start of the bucket that contains t_from
-- raises     QN001 if one of them is not a time, or from is later than to
create or replace function queen.time_range(
    p_args jsonb, out t_from timestamptz, out t_to timestamptz, out first timestamptz, out minutes int,
    out width interval, out seconds float8, out shown json)
language plpgsql stable
as $$
begin
    t_to := queen.param_time(p_args, 'to', clock_timestamp());
    t_from := queen.param_time(p_args, 'from', least(clock_timestamp(), t_to) - interval '1 hour');
    if not isfinite(t_from) or not isfinite(t_to) then
        raise exception using errcode = 'QN001', message = 'from and to must be timestamps';
    elsif t_from > t_to then
        raise exception using errcode = 'QN001', message = 'from must not be later than to';
    end if;
    minutes := case when t_to - t_from <= interval '60 minutes' then 1
                    when t_to - t_from <= interval '6 hours' then 5
                    when t_to - t_from <= interval '24 hours' then 15
                    when t_to - t_from <= interval '7 days' then 60
                    else 360 end;
    width := minutes * interval '1 minute';
    seconds := minutes * 60;
    first := date_bin(width, t_from, 'epoch');
    shown := json_build_object('from', queen.iso_ms(t_from), 'to', queen.iso_ms(t_to));
end
$$;
