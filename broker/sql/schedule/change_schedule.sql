-- queen.change_schedule: GET, PATCH and DELETE /api/v1/schedules/:id, and POST of its /pause and /resume.
--
-- needs: require_key, find_schedule, check_schedule, takes_partition, cron_next, queue_seals, schedule_answer, strict_int
-- called by  broker/src/api/admin/schedules.c
-- in         p_args: id: id or name; runs: with so many of its next runs, at most 100; body: fields to change; p_how: get, change, pause, resume, delete;
--            sealed, of: its sealed payload, for a queue with encryptionEnabled (null, false: there is no key), and the payload it was made from
-- out        the schedule as it is now; 404 if there is none; 409 if its new name is taken;
--            status 0: the caller must seal the payload (broker/src/api/sql_endpoint.h)
-- locks      its row; then the queue, shared
-- raises     QN001 for an invalid field
--
-- Times missed during a pause, or before its expression was changed, do not run later.
create or replace function queen.change_schedule(p_args jsonb, p_how text)
returns table (status int, piece text, payload bytea, sealed boolean)
language plpgsql
as $$
#variable_conflict use_column
declare
    b jsonb := case when p_how = 'change' then p_args -> 'body' when p_how = 'pause' then '{"paused": true}'
                    when p_how = 'resume' then '{"paused": false}' else '{}' end;
    s queen.schedules;
    v_payload jsonb; -- the new payload
begin
    perform queen.check_schedule(b, false);
    if p_how = 'get' then
        select * into s from queen.schedules n where n.id = queen.find_schedule(p_args ->> 'id');
    else
        select * into s from queen.schedules n where n.id = queen.find_schedule(p_args ->> 'id') for update;
    end if;
    if s.id is null then
        return query select 404, '{"error":"No such schedule"}', null::bytea, false;
        return;
    end if;
    if p_how = 'delete' then
        delete from queen.schedules n where n.id = s.id;
    elsif b <> '{}' then
        if (b ? 'queue' or b ? 'partition')
           and not queen.takes_partition(coalesce(b ->> 'queue', s.queue_name), coalesce(b ->> 'partition', s.lane_name)) then
            raise exception 'partition: the queue has a fixed set of partitions and this is not one of them' using errcode = 'QN001';
        end if;
        v_payload := case when b ? 'payload' then b -> 'payload' else s.payload end;
        s.sealed := s.sealed and not b ? 'payload';
        if not s.sealed and queen.queue_seals(coalesce(b ->> 'queue', s.queue_name)) then
            if not p_args ? 'sealed' or (p_args ->> 'of')::timestamptz <> s.updated_at then
                return query select 0, (p_args || jsonb_build_object('of', s.updated_at))::text, convert_to(v_payload::text, 'UTF8'), false;
                return;
            end if;
            perform queen.require_key(coalesce(b ->> 'queue', s.queue_name), p_args);
            s.sealed := jsonb_typeof(p_args -> 'sealed') = 'object';
            v_payload := case when s.sealed then p_args -> 'sealed' else v_payload end;
        end if;
        if b ? 'cron' or b ? 'timezone' or coalesce((b ->> 'paused')::boolean, s.paused) <> s.paused then
            s.next_at := case when not coalesce((b ->> 'paused')::boolean, s.paused)
                              then queen.cron_next(coalesce(b ->> 'cron', s.cron), coalesce(b ->> 'timezone', s.timezone),
                                                   clock_timestamp()) end;
            s.delayed_at := null;
        end if;
        update queen.schedules n
           set name = coalesce(b ->> 'name', n.name), queue_name = coalesce(b ->> 'queue', n.queue_name),
               lane_name = coalesce(b ->> 'partition', n.lane_name), cron = coalesce(b ->> 'cron', n.cron),
               timezone = coalesce(b ->> 'timezone', n.timezone),
               payload = v_payload, sealed = s.sealed,
               missed = coalesce(b ->> 'missed', n.missed), paused = coalesce((b ->> 'paused')::boolean, n.paused),
               next_at = s.next_at, delayed_at = s.delayed_at, updated_at = clock_timestamp()
         where n.id = s.id
        returning * into s;
    end if;
    return query select * from queen.schedule_answer(200, s, least(queen.strict_int(p_args, 'runs', 0), 100)::int);
exception when unique_violation then
    return query select 409, json_build_object('error', format('there is a schedule "%s" already', b ->> 'name'))::text, null::bytea, false;
end
$$;
