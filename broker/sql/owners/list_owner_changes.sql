-- queen.list_owner_changes: GET /api/v1/consumer-groups/:group/queues/:queue/owners/changes.
--
-- needs: param_int, param_time, iso_ms
-- called by  broker/src/api/admin/owners.c
-- in         p_args: group, queue; from (an hour ago), to (now), limit (100, at most 1000), bucketSeconds: also count by time, at most 1000 buckets
-- out        200 {"changes":[...], "total", "buckets":[{"from","taken","released","expired"}]}: newest first; buckets only with bucketSeconds. 404: no such queue
-- raises     QN001 for an invalid time, a range that ends before it begins, and too many buckets
create or replace function queen.list_owner_changes(p_args jsonb)
returns table (status int, answer json)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_id    uuid := (select q.id from queen.queues q where q.name = p_args ->> 'queue');
    v_to    timestamptz := queen.param_time(p_args, 'to', clock_timestamp());
    v_from  timestamptz := queen.param_time(p_args, 'from', v_to - interval '1 hour');
    v_limit bigint := least(greatest(queen.param_int(p_args, 'limit', 100), 0), 1000);
    v_width bigint := queen.param_int(p_args, 'bucketSeconds', 0);
begin
    if v_from > v_to then
        raise exception 'from must not be later than to' using errcode = 'QN001';
    elsif v_width < 0 or (v_width > 0 and extract(epoch from v_to - v_from) > v_width * 1000.0) then
        raise exception 'bucketSeconds must make at most 1000 buckets' using errcode = 'QN001';
    end if;
    if v_id is null then
        status := 404;
        answer := json_build_object('error', 'Queue not found');
        return next;
        return;
    end if;
    status := 200;
    with found as materialized (
        select c.* from queen.owner_changes c
         where c.queue_id = v_id and c.grp = p_args ->> 'group' and c.at >= v_from and c.at < v_to
    ), buckets as (
        select b.n, count(f.at) filter (where f.owner is not null and not f.expired) as taken, count(f.at) filter (where f.owner is null) as released,
               count(f.at) filter (where f.expired) as expired
          from generate_series(0, case when v_width > 0 then greatest(ceil(extract(epoch from v_to - v_from) / v_width)::bigint, 1) - 1 end) b(n)
          left join found f on v_width > 0 and floor(extract(epoch from f.at - v_from) / v_width)::bigint = b.n
         group by b.n
    )
    select json_build_object(
               'queue', p_args ->> 'queue', 'consumerGroup', p_args ->> 'group', 'total', (select count(*) from found),
               'changes', coalesce((select json_agg(json_build_object(
                                               'at', queen.iso_ms(k.at), 'partition', k.partition, 'epoch', k.epoch, 'previous', k.previous, 'owner', k.owner,
                                               'expired', k.expired) order by k.at desc, k.partition)
                                      from (select * from found f order by f.at desc, f.partition limit v_limit) k), '[]'),
               'buckets', (select json_agg(json_build_object('from', queen.iso_ms(v_from + b.n * v_width * interval '1 second'), 'taken', b.taken,
                                                             'released', b.released, 'expired', b.expired) order by b.n) from buckets b))
      into answer;
    return next;
end
$$;
