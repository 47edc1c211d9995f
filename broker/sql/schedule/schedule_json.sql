-- queen.schedule_json: a recurring message as JSON, without its payload.
--
-- needs: iso_ms
-- called by  the functions behind /api/v1/schedules
-- If its partition is locked, nextRunAt is the time of the waiting run.
create or replace function queen.schedule_json(s queen.schedules)
returns json
language sql stable
as $$
    select json_build_object(
        'id', s.id, 'name', s.name, 'queue', s.queue_name, 'partition', s.lane_name, 'cron', s.cron, 'timezone', s.timezone,
        'missed', s.missed, 'paused', s.paused, 'nextRunAt', queen.iso_ms(coalesce(s.delayed_at, s.next_at)),
        'lastRunAt', queen.iso_ms(s.last_run_at), 'lastMessageId', s.last_message, 'runs', s.runs,
        'createdAt', queen.iso_ms(s.created_at), 'updatedAt', queen.iso_ms(s.updated_at))
$$;
