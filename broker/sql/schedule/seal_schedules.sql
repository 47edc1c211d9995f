-- queen.seal_schedules: seal the recurring messages of a queue after encryptionEnabled was switched on, one per step.
--
-- called by  broker/src/api/admin/configure.c (call "seal_schedules"), before it answers
-- in         p_args: queue; then the fields of the previous answer: id, of, and sealed: the sealed payload (null, false: there is no key)
-- out        status 0: a payload to seal (broker/src/api/sql_endpoint.h); 200: none is left in clear
-- locks      first step: the advisory lock for sealing the queue's schedules, exclusive, which waits for sessions that store one and have
--            not seen the option (queen.queue_seals); no other lock, so it cannot deadlock. Then the row of the schedule
create or replace function queen.seal_schedules(p_args jsonb)
returns table (status int, piece text, payload bytea, sealed boolean)
language plpgsql
as $$
begin
    if not p_args ? 'sealed' then
        perform pg_advisory_xact_lock(737004, hashtext(p_args ->> 'queue'));
    end if;
    if jsonb_typeof(p_args -> 'sealed') = 'object' then
        -- A schedule that was changed meanwhile is returned again.
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
