-- queen.scheduled_json: a scheduled message as JSON, without its payload.
--
-- needs: lane_path, iso_ms
-- called by  queen.list_scheduled, queen.get_scheduled
create or replace function queen.scheduled_json(s queen.scheduled)
returns json
language sql stable
as $$
    select json_build_object(
               'id', s.id, 'kind', case s.kind when 'p' then 'push' else 'retry' end,
               'queue', p.queue_name, 'partition', p.lane_name, 'partitionId', p.lane_id,
               'transactionId', coalesce(s.transaction_id, s.key::text), 'correlationId', s.correlation_id,
               'consumerGroup', s.grp, 'attempt', s.attempt,
               'scheduledAt', queen.iso_ms(s.due_at), 'createdAt', queen.iso_ms(s.created_at), 'bytes', octet_length(s.message))
      from (select 1) one
      left join queen.lane_path(s.lane) p on true
$$;
