-- queen.group_partitions: GET /api/v1/consumer-groups/:group/queues/:queue/partitions.
--
-- needs: param_int, freshen_stats, latest_state, iso_ms
-- called by  broker/src/api/admin/groups_read.c
-- in         p_args: group, queue; limit (100, at most 1000), offset, search (part of the name, in any case),
--            sort: lag (most messages behind first, the default), age (longest wait first), name
-- out        200: the partitions of which the group has received messages, with cursor, lag and lease, and how many are leased; no partition for an unknown
--            group. 404: no such queue
-- raises     QN001 for an unknown sort
create or replace function queen.group_partitions(p_args jsonb)
returns table (status int, answer json)
language plpgsql
set enable_hashjoin = on
set enable_mergejoin = on
set enable_seqscan = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
set work_mem = '32MB'
as $$
#variable_conflict use_column
declare
    v_now    timestamptz := clock_timestamp();
    v_id     uuid := (select q.id from queen.queues q where q.name = p_args ->> 'queue');
    v_limit  bigint := least(greatest(queen.param_int(p_args, 'limit', 100), 0), 1000);
    v_offset bigint := greatest(queen.param_int(p_args, 'offset', 0), 0);
    v_search text := nullif(lower(p_args ->> 'search'), '');
    v_sort   text := coalesce(nullif(p_args ->> 'sort', ''), 'lag');
begin
    if v_sort not in ('lag', 'age', 'name') then
        raise exception 'sort must be lag, age or name' using errcode = 'QN001';
    end if;
    if v_id is null then
        status := 404;
        answer := json_build_object('error', 'Queue not found');
        return next;
        return;
    end if;
    perform queen.freshen_stats();
    status := 200;
    with all_of_group as (
        select c.num, l.name, l.id, s.last_at, coalesce(s.consumed, 0) as consumed, coalesce(s.lag, 0) as lag, s.oldest_at, s.lease_until > v_now as leased
          from queen.consumers c
          join queen.lanes l on l.num = c.lane
          left join queen.consumer_stats s on s.consumer = c.num
         where c.grp = p_args ->> 'group' and l.queue_id = v_id and (v_search is null or strpos(lower(l.name), v_search) > 0)
    ), page as (
        select a.*, row_number() over () as at
          from (select * from all_of_group k
                 order by case when v_sort = 'lag' then k.lag end desc, case when v_sort = 'age' then k.oldest_at end nulls last, k.name collate "C"
                 limit v_limit offset v_offset) a
    )
    select json_build_object(
               'queue', p_args ->> 'queue', 'consumerGroup', p_args ->> 'group',
               'leases', (select count(*) from all_of_group a where a.leased),
               'partitions', coalesce((
                   select json_agg(json_build_object(
                              'partition', p.name, 'partitionId', p.id, 'cursor', st.cursor_seq, 'totalConsumed', p.consumed, 'lag', p.lag,
                              'lagSeconds', coalesce(greatest(floor(date_part('epoch', v_now - p.oldest_at)), 0), 0)::bigint,
                              'lastConsumedAt', queen.iso_ms(p.last_at),
                              'leaseId', case when st.lease_until > v_now then coalesce(st.lease_text, st.lease::text) end,
                              'leaseExpiresAt', case when st.lease_until > v_now then queen.iso_ms(st.lease_until) end) order by p.at)
                     from page p left join lateral queen.latest_state(p.num) st on true), '[]'),
               'pagination', json_build_object('limit', v_limit, 'offset', v_offset, 'total', (select count(*) from all_of_group)))
      into answer;
    return next;
end
$$;
