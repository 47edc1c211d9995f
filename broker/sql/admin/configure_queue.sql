-- queen.configure_queue: create a queue or replace its whole configuration.
--
-- needs: check_names, option_int, option_rate, option_bool, ensure_lanes, fix_partitions, check_retry_policy, fill_retry_policy, work_limits
-- called by  broker/src/api/admin/configure.c (call "configure"); queen.configure_queue_v1
-- in         p_options: JSON object; a missing or null option gets its default; unknown
--            names are ignored, unless they are nearly an option (queen.check_names)
-- out        ids of the queue and of its partition Default (created if missing), or partition 0 of a fixed set; all 15 options as they are
--            now; retryPolicy if there is one, with its defaults; maxDeliveries, maxInFlight, rateLimit
--            (with rateBurst), keyMaxInFlight, keyRateLimit (with keyRateBurst) if there is a limit; ordering if it is not "partition"; settlement if it is not "batch";
--            allowUnencrypted if it is true;
--            partitions if there is a fixed set of them (which cannot change:
--            see queen.fix_partitions)
--            unfinished: some partitions do not have the options yet. The caller calls queen.spread_queue until it is done
-- effects    changed options are copied to the partitions (queen.spread_options)
-- locks      the queue; lanes as queen.spread_options, without waiting; a new partition (queen.ensure_lanes)
--            p_storage: the sender may change encryption, retention, ttl and maxWaitTimeSeconds
-- raises     QN001 for an option of the wrong type, naming it; QN403 for a change that p_storage forbids
create or replace function queen.configure_queue(
    p_name text, p_namespace text, p_task text, p_options jsonb, p_storage boolean default true)
returns table (queue_id uuid, default_lane_id uuid, options jsonb, unfinished boolean)
language plpgsql
as $$
#variable_conflict use_column
declare
    o         jsonb := coalesce(nullif(p_options, 'null'), '{}');
    n         queen.queues%rowtype; -- the new configuration
    v_old     queen.queues%rowtype;
    v_lane_id uuid;
begin
    if jsonb_typeof(o) <> 'object' then
        raise exception 'options must be an object' using errcode = 'QN001';
    end if;
    -- The same list as in broker/src/api/admin/configure.c: tests/e2e/broker/test_unknown_names.py compares them.
    perform queen.check_names(o, '{leaseTime,retryLimit,retryDelay,maxSize,ttl,deadLetterQueue,dlqAfterMaxRetries,priority,delayedProcessing,
        windowBuffer,retentionSeconds,completedRetentionSeconds,retentionEnabled,encryptionEnabled,allowUnencrypted,maxWaitTimeSeconds,
        retryPolicy,partitions,maxDeliveries,ordering,settlement,maxInFlight,rateLimit,rateBurst,
        keyMaxInFlight,keyRateLimit,keyRateBurst}', '');
    n.lease_time := queen.option_int(o, 'leaseTime', 300, 0);
    n.retry_limit := queen.option_int(o, 'retryLimit', 3, 0);
    n.retry_delay := queen.option_int(o, 'retryDelay', 1000, 0);
    n.max_queue_size := queen.option_int(o, 'maxSize', 0, 0);
    n.ttl := queen.option_int(o, 'ttl', 3600, 0);
    n.dead_letter_queue := queen.option_bool(o, 'deadLetterQueue', false);
    n.dlq_after_max_retries := queen.option_bool(o, 'dlqAfterMaxRetries', false);
    n.priority := queen.option_int(o, 'priority', 0, -2147483648);
    n.delayed_processing := queen.option_int(o, 'delayedProcessing', 0, 0);
    n.window_buffer := queen.option_int(o, 'windowBuffer', 0, 0);
    n.retention_seconds := queen.option_int(o, 'retentionSeconds', 0, 0);
    n.completed_retention_seconds := queen.option_int(o, 'completedRetentionSeconds', 0, 0);
    -- Some clients have no field for the flag, so a positive time implies it.
    n.retention_enabled := queen.option_bool(o, 'retentionEnabled',
        n.retention_seconds > 0 or n.completed_retention_seconds > 0);
    n.encryption_enabled := queen.option_bool(o, 'encryptionEnabled', false);
    n.allow_unencrypted := queen.option_bool(o, 'allowUnencrypted', false);
    n.max_wait_time_seconds := queen.option_int(o, 'maxWaitTimeSeconds', 0, 0);
    -- The defaults of these two are only reported. They take effect only if the request contains them.
    n.ttl_acts := coalesce(o -> 'ttl', 'null') <> 'null' and n.ttl > 0;
    n.retry_delay_acts := coalesce(o -> 'retryDelay', 'null') <> 'null' and n.retry_delay > 0;
    n.ordering := coalesce(o ->> 'ordering', 'partition');
    if coalesce(jsonb_typeof(o -> 'ordering'), 'null') not in ('string', 'null') or n.ordering not in ('partition', 'none') then
        raise exception 'ordering must be "partition" or "none"' using errcode = 'QN001';
    end if;
    n.settlement := coalesce(o ->> 'settlement', 'batch');
    if coalesce(jsonb_typeof(o -> 'settlement'), 'null') not in ('string', 'null') or n.settlement not in ('batch', 'message') then
        raise exception 'settlement must be "batch" or "message"' using errcode = 'QN001';
    end if;
    n.retry_policy := nullif(o -> 'retryPolicy', 'null');
    if n.retry_policy is not null then
        perform queen.check_retry_policy(n.retry_policy, 'retryPolicy', false);
    end if;
    n.max_deliveries := queen.option_int(o, 'maxDeliveries', case when n.retry_policy ->> 'mode' = 'scheduled' or n.ordering = 'none' then 20 else 0 end, 0);
    n.max_in_flight := queen.option_int(o, 'maxInFlight', 0, 0);
    n.rate_limit := queen.option_rate(o, 'rateLimit');
    n.rate_burst := queen.option_int(o, 'rateBurst', 0, 0);
    n.key_max_in_flight := queen.option_int(o, 'keyMaxInFlight', 0, 0);
    n.key_rate_limit := queen.option_rate(o, 'keyRateLimit');
    n.key_rate_burst := queen.option_int(o, 'keyRateBurst', 0, 0);
    if n.ordering <> 'none' and (n.max_in_flight > 0 or n.rate_limit > 0 or n.rate_burst > 0
                                 or n.key_max_in_flight > 0 or n.key_rate_limit > 0 or n.key_rate_burst > 0) then
        raise exception '% needs ordering "none"',
            case when n.max_in_flight > 0 then 'maxInFlight' when n.rate_limit > 0 then 'rateLimit' when n.rate_burst > 0 then 'rateBurst'
                 when n.key_max_in_flight > 0 then 'keyMaxInFlight' when n.key_rate_limit > 0 then 'keyRateLimit'
                 else 'keyRateBurst' end using errcode = 'QN001';
    elsif n.rate_burst > 0 and n.rate_limit = 0 then
        raise exception 'rateBurst needs rateLimit' using errcode = 'QN001';
    elsif n.key_rate_burst > 0 and n.key_rate_limit = 0 then
        raise exception 'keyRateBurst needs keyRateLimit' using errcode = 'QN001';
    end if;
    if n.rate_limit > 0 and n.rate_burst = 0 then
        n.rate_burst := ceil(n.rate_limit);
    end if;
    if n.key_rate_limit > 0 and n.key_rate_burst = 0 then
        n.key_rate_burst := ceil(n.key_rate_limit);
    end if;
    if not p_storage then
        select q.* into v_old from queen.queues q where q.name = p_name for no key update;
        if (n.encryption_enabled, n.allow_unencrypted, n.retention_enabled, n.retention_seconds, n.completed_retention_seconds,
            n.max_wait_time_seconds, n.ttl_acts, case when n.ttl_acts then n.ttl end)
           is distinct from
           (coalesce(v_old.encryption_enabled, false), coalesce(v_old.allow_unencrypted, false), coalesce(v_old.retention_enabled, false),
            coalesce(v_old.retention_seconds, 0),
            coalesce(v_old.completed_retention_seconds, 0), coalesce(v_old.max_wait_time_seconds, 0), coalesce(v_old.ttl_acts, false),
            case when v_old.ttl_acts then v_old.ttl end) then
            raise exception 'the rules do not permit a change of encryptionEnabled, allowUnencrypted, ttl, maxWaitTimeSeconds or retention: send their present values'
                using errcode = 'QN403';
        end if;
    end if;

    insert into queen.queues as q (
           name, namespace, task, priority, lease_time, retry_limit, retry_delay, ttl,
           dead_letter_queue, dlq_after_max_retries, delayed_processing, window_buffer,
           retention_seconds, completed_retention_seconds, retention_enabled, encryption_enabled,
           max_wait_time_seconds, max_queue_size, ttl_acts, retry_delay_acts, retry_policy,
           max_deliveries, ordering, settlement, max_in_flight, rate_limit, rate_burst,
           key_max_in_flight, key_rate_limit, key_rate_burst, allow_unencrypted)
    values (p_name, coalesce(p_namespace, ''), coalesce(p_task, ''), n.priority, n.lease_time,
            n.retry_limit, n.retry_delay, n.ttl, n.dead_letter_queue, n.dlq_after_max_retries,
            n.delayed_processing, n.window_buffer, n.retention_seconds, n.completed_retention_seconds,
            n.retention_enabled, n.encryption_enabled, n.max_wait_time_seconds, n.max_queue_size,
            n.ttl_acts, n.retry_delay_acts, n.retry_policy, n.max_deliveries, n.ordering, n.settlement,
            n.max_in_flight, n.rate_limit, n.rate_burst, n.key_max_in_flight, n.key_rate_limit, n.key_rate_burst, n.allow_unencrypted)
        on conflict (name) do update set
           namespace = excluded.namespace, task = excluded.task, priority = excluded.priority,
           lease_time = excluded.lease_time, retry_limit = excluded.retry_limit,
           retry_delay = excluded.retry_delay, ttl = excluded.ttl,
           dead_letter_queue = excluded.dead_letter_queue,
           dlq_after_max_retries = excluded.dlq_after_max_retries,
           delayed_processing = excluded.delayed_processing, window_buffer = excluded.window_buffer,
           retention_seconds = excluded.retention_seconds,
           completed_retention_seconds = excluded.completed_retention_seconds,
           retention_enabled = excluded.retention_enabled,
           encryption_enabled = excluded.encryption_enabled,
           max_wait_time_seconds = excluded.max_wait_time_seconds,
           max_queue_size = excluded.max_queue_size, ttl_acts = excluded.ttl_acts,
           retry_delay_acts = excluded.retry_delay_acts, retry_policy = excluded.retry_policy,
           max_deliveries = excluded.max_deliveries, ordering = excluded.ordering, settlement = excluded.settlement, max_in_flight = excluded.max_in_flight,
           rate_limit = excluded.rate_limit, rate_burst = excluded.rate_burst, key_max_in_flight = excluded.key_max_in_flight,
           key_rate_limit = excluded.key_rate_limit, key_rate_burst = excluded.key_rate_burst, allow_unencrypted = excluded.allow_unencrypted
    returning q.id into n.id;

    n.partitions := queen.fix_partitions(n.id, p_name, queen.option_int(o, 'partitions', 0, 0));
    if n.partitions = 0 then
        perform queen.ensure_lanes(array[p_name], array['Default']);
    end if;
    select l.id into v_lane_id
      from queen.lanes l where l.queue_id = n.id and l.name = case when n.partitions > 0 then '0' else 'Default' end;

    return query
    select n.id, v_lane_id, jsonb_build_object(
        'leaseTime', n.lease_time, 'retryLimit', n.retry_limit, 'retryDelay', n.retry_delay,
        'maxSize', n.max_queue_size, 'ttl', n.ttl, 'deadLetterQueue', n.dead_letter_queue,
        'dlqAfterMaxRetries', n.dlq_after_max_retries, 'priority', n.priority,
        'delayedProcessing', n.delayed_processing, 'windowBuffer', n.window_buffer,
        'retentionSeconds', n.retention_seconds,
        'completedRetentionSeconds', n.completed_retention_seconds,
        'retentionEnabled', n.retention_enabled, 'encryptionEnabled', n.encryption_enabled,
        'maxWaitTimeSeconds', n.max_wait_time_seconds)
        || case when n.retry_policy is null then '{}'::jsonb
                else jsonb_build_object('retryPolicy', queen.fill_retry_policy(n.retry_policy)) end
        || case when n.max_deliveries > 0 then jsonb_build_object('maxDeliveries', n.max_deliveries) else '{}' end
        || case when n.ordering <> 'partition' then jsonb_build_object('ordering', n.ordering) else '{}' end
        || case when n.settlement <> 'batch' then jsonb_build_object('settlement', n.settlement) else '{}' end
        || case when n.allow_unencrypted then '{"allowUnencrypted": true}'::jsonb else '{}' end
        || queen.work_limits(n)
        || case when n.partitions > 0 then jsonb_build_object('partitions', n.partitions) else '{}' end,
        exists (select from queen.configuring c where c.queue_id = n.id);
end
$$;
