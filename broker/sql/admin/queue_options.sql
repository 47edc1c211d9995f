-- queen.queue_options: the options of a queue that take effect, in the form that configure accepts.
--
-- needs: fill_retry_policy, work_limits
-- called by  queen.status_queue
-- out        sent to configure, it changes nothing. Defaults that are only reported (ttl, retryDelay) are left out unless they were sent
create or replace function queen.queue_options(q queen.queues)
returns jsonb
language sql stable
as $$
    select jsonb_build_object(
               'ordering', q.ordering, 'leaseTime', q.lease_time, 'retryLimit', q.retry_limit, 'maxDeliveries', q.max_deliveries,
               'maxSize', q.max_queue_size, 'priority', q.priority, 'delayedProcessing', q.delayed_processing, 'windowBuffer', q.window_buffer,
               'retentionEnabled', q.retention_enabled, 'retentionSeconds', q.retention_seconds,
               'completedRetentionSeconds', q.completed_retention_seconds, 'maxWaitTimeSeconds', q.max_wait_time_seconds,
               'encryptionEnabled', q.encryption_enabled)
           || case when q.ttl_acts then jsonb_build_object('ttl', q.ttl) else '{}' end
           || case when q.retry_delay_acts then jsonb_build_object('retryDelay', q.retry_delay) else '{}' end
           || case when q.retry_policy is null then '{}' else jsonb_build_object('retryPolicy', queen.fill_retry_policy(q.retry_policy)) end
           || case when q.settlement <> 'batch' then jsonb_build_object('settlement', q.settlement) else '{}' end
           || case when q.allow_unencrypted then '{"allowUnencrypted": true}'::jsonb else '{}' end
           || queen.work_limits(q)
           || case when q.partitions > 0 then jsonb_build_object('partitions', q.partitions) else '{}' end
$$;
