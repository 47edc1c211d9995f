-- queen.schedule_item: the message of one run of a schedule, as an item of a push.
--
-- called by  queen.run_schedules; queen.run_schedule_now
-- out        its transaction id contains the schedule's id and the time, so that a time runs once. It is pushed as a scheduled
--            message (delaySeconds 0), because a full queue must not block the others
create or replace function queen.schedule_item(s queen.schedules, p_at timestamptz)
returns jsonb
language sql immutable
as $$
    select jsonb_build_object(
        'queue', s.queue_name, 'partition', s.lane_name, 'payload', s.payload, 'is_encrypted', s.sealed, 'delaySeconds', 0,
        'transactionId', format('schedule:%s:%s', s.id, to_char(p_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')))
$$;
