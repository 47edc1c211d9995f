-- queen.count_scheduled: GET /api/v1/scheduled/count.
--
-- needs: scheduled_query, strict_int, param_time, iso_ms
-- called by  broker/src/api/admin/scheduled.c
-- in         p_args: as queen.scheduled_query; bucketSeconds with from and to: counts by time as well
-- out        {"count":n}, counted one by one; with bucketSeconds also "buckets":[{"from":time,"count":n}], one for each
--            interval from "from" on, empty ones included
-- raises     QN001 for an invalid time or kind, bucketSeconds without from and to, or more than 1,000 buckets
create or replace function queen.count_scheduled(p_args jsonb)
returns json
language plpgsql stable
set enable_seqscan = on
set enable_bitmapscan = on
as $$
declare
    v_width   bigint := queen.strict_int(p_args, 'bucketSeconds', 0);
    v_from    timestamptz := queen.param_time(p_args, 'from', null);
    v_to      timestamptz := queen.param_time(p_args, 'to', null);
    v_n       bigint;
    v_buckets json;
begin
    if v_width <= 0 then
        execute format('select count(*) from (%s) s', queen.scheduled_query(p_args, null, null, null)) into v_n;
        return json_build_object('count', v_n);
    elsif v_from is null or v_to is null then
        raise exception 'from and to must be given with bucketSeconds' using errcode = 'QN001';
    elsif extract(epoch from v_to - v_from) > v_width * 1000.0 then
        raise exception 'bucketSeconds must divide the time between from and to into at most 1000 parts' using errcode = 'QN001';
    end if;
    execute format(
        'with due as (select floor(extract(epoch from s.due_at - $1) / $2)::bigint as i, count(*) as n from (%s) s group by 1)
         select coalesce(sum(d.n), 0), json_agg(json_build_object(''from'', queen.iso_ms($1 + make_interval(secs => b.i * $2)),
                ''count'', coalesce(d.n, 0)) order by b.i)
           from generate_series(0, ceil(extract(epoch from $3 - $1) / $2)::bigint - 1) b(i) left join due d on d.i = b.i',
        queen.scheduled_query(p_args, null, null, null))
       into v_n, v_buckets using v_from, v_width::double precision, v_to;
    return json_build_object('count', v_n, 'buckets', coalesce(v_buckets, '[]'));
end
$$;
