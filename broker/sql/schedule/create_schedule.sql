-- queen.create_schedule: POST /api/v1/schedules.
--
-- needs: require_key, check_schedule, takes_partition, cron_next, queue_seals, schedule_answer
-- called by  broker/src/api/admin/schedules.c
-- in         p_args: body: see queen.check_schedule; partition Default, timezone UTC, payload null, missed skip, paused false;
--            sealed: its sealed payload, for a queue with encryptionEnabled (null, false: there is no key)
-- out        201 and the schedule; 409 if the name is taken; status 0: the caller must seal the payload (broker/src/api/sql_endpoint.h)
-- locks      the queue, shared
-- raises     QN001 for an invalid field
create or replace function queen.create_schedule(p_args jsonb)
returns table (status int, piece text, payload bytea, sealed boolean)
language plpgsql
as $$
declare
    b jsonb := p_args -> 'body';
    s queen.schedules;
begin
    perform queen.check_schedule(b, true);
    if not queen.takes_partition(b ->> 'queue', coalesce(b ->> 'partition', 'Default')) then
        raise exception 'partition: the queue has a fixed set of partitions and this is not one of them' using errcode = 'QN001';
    end if;
    if queen.queue_seals(b ->> 'queue') and not p_args ? 'sealed' then
        return query select 0, p_args::text, convert_to(coalesce(b -> 'payload', 'null')::text, 'UTF8'), false;
        return;
    end if;
    perform queen.require_key(b ->> 'queue', p_args);
    insert into queen.schedules (name, queue_name, lane_name, cron, timezone, payload, sealed, missed, paused, next_at)
    select b ->> 'name', b ->> 'queue', coalesce(b ->> 'partition', 'Default'), b ->> 'cron', v.zone,
           coalesce(v.sealed, b -> 'payload', 'null'), v.sealed is not null, coalesce(b ->> 'missed', 'skip'), v.paused,
           case when not v.paused then queen.cron_next(b ->> 'cron', v.zone, clock_timestamp()) end
      from (select coalesce(b ->> 'timezone', 'UTC') as zone, coalesce((b ->> 'paused')::boolean, false) as paused,
                   case when jsonb_typeof(p_args -> 'sealed') = 'object' then p_args -> 'sealed' end as sealed) v
        on conflict (name) do nothing
    returning * into s;
    if s.id is null then
        return query select 409, json_build_object('error', format('there is a schedule "%s" already', b ->> 'name'))::text, null::bytea, false;
    else
        return query select * from queen.schedule_answer(201, s);
    end if;
end
$$;
