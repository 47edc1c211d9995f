-- queen.work_limits: the limits of a work queue as options, without those that are not set.
--
-- called by  queen.configure_queue, queen.queue_options
create or replace function queen.work_limits(q queen.queues)
returns jsonb
language sql immutable
as $$
    select case when q.max_in_flight > 0 then jsonb_build_object('maxInFlight', q.max_in_flight) else '{}' end
        || case when q.rate_limit > 0 then jsonb_build_object('rateLimit', q.rate_limit, 'rateBurst', q.rate_burst) else '{}' end
        || case when q.key_max_in_flight > 0 then jsonb_build_object('keyMaxInFlight', q.key_max_in_flight) else '{}' end
        || case when q.key_rate_limit > 0 then jsonb_build_object('keyRateLimit', q.key_rate_limit, 'keyRateBurst', q.key_rate_burst) else '{}' end
$$;
