-- queen.group_dead_letters: GET /api/v1/dlq/groups.
--
-- needs: strict_int, param_time, iso_ms
-- called by  broker/src/api/admin/messages.c
-- in         p_args: queue, partition, consumerGroup, from and to (of the failure), limit (100)
-- out        {"groups":[...],"counted","truncated","hourlyFrom"}: dead letters by queue and the first 255 characters of the error, most first, each
--            with its number per hour of the last day, oldest hour first, and the newest three as samples. At most the newest 100,000 are
--            counted; truncated: there are more
-- raises     QN001 for invalid times
create or replace function queen.group_dead_letters(p_args jsonb)
returns json
language plpgsql
set enable_hashjoin = on
set enable_mergejoin = on
set enable_seqscan = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
set work_mem = '32MB'
as $$
declare
    v_limit  bigint := greatest(queen.strict_int(p_args, 'limit', 100), 0);
    v_from   timestamptz := queen.param_time(p_args, 'from', null);
    v_to     timestamptz := queen.param_time(p_args, 'to', null);
    v_first  timestamptz := date_trunc('hour', clock_timestamp(), 'UTC') - interval '23 hours';
    v_most   constant bigint := 100000;
    v_answer json;
begin
    with recent as materialized (
        select q.name as queue, left(coalesce(d.error_message, ''), 255) as error, d.consumer_group, d.message_id, d.id, d.failed_at,
               floor(extract(epoch from d.failed_at - v_first) / 3600)::int as hour,
               row_number() over (partition by q.name, left(coalesce(d.error_message, ''), 255) order by d.failed_at desc, d.id desc) as nth
          from (select d.* from queen.dead_letter_queue d
                 where (p_args ->> 'consumerGroup' is null or d.consumer_group = p_args ->> 'consumerGroup')
                   and (v_from is null or d.failed_at >= v_from) and (v_to is null or d.failed_at <= v_to)
                   and (not p_args ?| array['queue', 'partition'] or exists (
                        select from queen.lanes l join queen.queues q on q.id = l.queue_id
                         where l.id = d.partition_id and (p_args ->> 'queue' is null or q.name = p_args ->> 'queue')
                           and (p_args ->> 'partition' is null or l.name = p_args ->> 'partition')))
                 order by d.failed_at desc, d.id desc limit v_most + 1) d
          join queen.lanes l on l.id = d.partition_id
          join queen.queues q on q.id = l.queue_id
    ), grouped as (
        select r.queue, r.error, count(*) as n, min(r.failed_at) as first_at, max(r.failed_at) as last_at,
               array_agg(distinct r.consumer_group::text) as groups,
               json_agg(json_build_object('dlqId', r.id, 'messageId', r.message_id, 'failedAt', queen.iso_ms(r.failed_at)) order by r.nth)
                   filter (where r.nth <= 3) as samples
          from recent r group by 1, 2
         order by n desc, r.queue collate "C", r.error collate "C" limit v_limit
    ), hourly as (
        select r.queue, r.error, r.hour, count(*) as n from recent r where r.hour >= 0 group by 1, 2, 3
    ), spread as (
        select g.queue, g.error, json_agg(coalesce(h.n, 0) order by x.hour) as hours
          from grouped g cross join generate_series(0, 23) x(hour)
          left join hourly h on h.queue = g.queue and h.error = g.error and h.hour = x.hour
         group by 1, 2
    )
    select json_build_object(
               'groups', coalesce((select json_agg(json_build_object(
                             'queue', g.queue, 'error', g.error, 'count', g.n, 'consumerGroups', g.groups,
                             'firstFailedAt', queen.iso_ms(g.first_at), 'lastFailedAt', queen.iso_ms(g.last_at),
                             'hourly', s.hours, 'samples', g.samples) order by g.n desc, g.queue collate "C", g.error collate "C")
                               from grouped g join spread s on s.queue = g.queue and s.error = g.error), '[]'),
               'counted', least((select count(*) from recent), v_most), 'truncated', (select count(*) from recent) > v_most,
               'hourlyFrom', queen.iso_ms(v_first))
      into v_answer;
    return v_answer;
end
$$;
