-- queen.get_group: GET /api/v1/consumer-groups/:group.
--
-- needs: freshen_stats, latest_state
-- called by  broker/src/api/admin/groups_read.c
-- out        an object keyed by queue; {} for an unknown group; rows as described in broker/src/api/sql_endpoint.h
create or replace function queen.get_group(p_args jsonb)
returns table (status int, piece text, payload bytea, sealed boolean, shape text,
               partition varchar, worker text, last_at timestamptz, consumed bigint, lag bigint, lag_seconds bigint,
               leased boolean)
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
    v_now timestamptz := clock_timestamp();
begin
    perform queen.freshen_stats();
    status := 200;
    piece := '{';
    shape := '{"partition":$1,"workerId":$2,"lastConsumedAt":$3,"totalConsumed":$4,"offsetLag":$5,"timeLagSeconds":$6,'
             '"leaseActive":$7}';
    return next;
    return query
    select null::int,
           -- The first partition of a queue starts with the queue's key, after the end of the previous queue.
           case when p.before is distinct from p.queue
                then case when p.before is null then '' else ']},' end || to_json(p.queue)::text || ':{"partitions":[' end,
           null::bytea, null::boolean, null::text,
           p.name, coalesce(st.lease_text, st.lease::text), p.last_at, p.consumed, p.lag, p.lag_seconds, st.consumer is not null
      from (select c.num, q.name as queue, l.name, s.last_at, coalesce(s.consumed, 0) as consumed, coalesce(s.lag, 0) as lag,
                   coalesce(greatest(floor(date_part('epoch', v_now - s.oldest_at)), 0)::bigint, 0) as lag_seconds,
                   lag(q.name) over (order by q.name collate "C", l.name collate "C") as before
              from queen.consumers c
              join queen.lanes l on l.num = c.lane
              join queen.queues q on q.id = l.queue_id
              left join queen.consumer_stats s on s.consumer = c.num
             where c.grp = p_args ->> 'group') p
      -- Look up the lease id only for consumers with a lease.
      left join (select k.consumer, k.lease, k.lease_text
                   from queen.consumer_stats s cross join lateral queen.latest_state(s.consumer) k
                  where s.grp = p_args ->> 'group' and s.lease_until > v_now and k.lease_until > v_now) st
        on st.consumer = p.num
     order by p.queue collate "C", p.name collate "C";
    piece := case when found then ']}}' else '}' end;
    shape := null;
    return next;
end
$$;
