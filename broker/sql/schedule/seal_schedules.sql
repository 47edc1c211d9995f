-- queen.seal_schedules: recurring messages of a queue that has encryptionEnabled now and had not before: one of them a step.
--
-- called by  broker/src/api/configure.c (call "seal_schedules"), before it answers
-- in         p_args: queue; then what the step before asked for: id, of, and sealed: the payload of that one (null: there is no key)
-- out        status 0: the payload of one, to be sealed (broker/src/api/sql_endpoint.h); 200: there is none in clear
-- locks      first step: the advisory lock of sealing the queue's schedules, alone, which waits for those who store one and have not
--            seen the option (queen.queue_seals); and nothing else, so they may hold what they like.  Then the row of the schedule
create or replace function queen.seal_schedules(p_args jsonb)
returns table (status int, piece text, payload bytea, sealed boolean)
language plpgsql
as $$
begin
    if not p_args ? 'sealed' then
        perform pg_advisory_xact_lock(737004, hashtext(p_args ->> 'queue'));
    end if;
    if jsonb_typeof(p_args -> 'sealed') = 'object' then
        -- One that was changed meanwhile is asked for again.
        update queen.schedules s set payload = p_args -> 'sealed', sealed = true
         where s.id = (p_args ->> 'id')::uuid and s.updated_at = (p_args ->> 'of')::timestamptz and not s.sealed;
    end if;
    if not p_args ? 'sealed' or jsonb_typeof(p_args -> 'sealed') = 'object' then
        return query
        select 0, json_build_object('queue', s.queue_name, 'id', s.id, 'of', s.updated_at)::text, convert_to(s.payload::text, 'UTF8'), false
          from queen.schedules s
          join queen.queues q on q.name = s.queue_name and q.encryption_enabled
         where s.queue_name = p_args ->> 'queue' and not s.sealed
         order by s.id limit 1;
    end if;
    if not found then
        return query select 200, '{}', null::bytea, false;
    end if;
end
$$;
