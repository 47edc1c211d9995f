-- queen.work_limits: the limits of a work queue as options, without those that are not set.
--
-- called by  queen.configure_queue, queen.queue_options
create or replace function queen.work_limits(p_in_flight int, p_rate double precision, p_burst int)
returns jsonb
language sql immutable
as $$
    select case when p_in_flight > 0 then jsonb_build_object('maxInFlight', p_in_flight) else '{}' end
        || case when p_rate > 0 then jsonb_build_object('rateLimit', p_rate, 'rateBurst', p_burst) else '{}' end
$$;
