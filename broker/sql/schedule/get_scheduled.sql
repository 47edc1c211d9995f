-- queen.get_scheduled: GET /api/v1/scheduled/:id.
--
-- needs: find_scheduled, scheduled_json, unpack_segment
-- called by  broker/src/api/admin/scheduled.c
-- in         p_args: id
-- out        the message with its payload as it was sent; 404 if it is not scheduled (any more)
create or replace function queen.get_scheduled(p_args jsonb)
returns table (status int, piece text, payload bytea, sealed boolean)
language plpgsql stable
as $$
declare
    s queen.scheduled;
begin
    select * into s from queen.find_scheduled(p_args ->> 'id');
    if s.num is null then
        return query select 404, '{"error":"No such message waits"}', null::bytea, false;
        return;
    end if;
    return query
    select 200, left(queen.scheduled_json(s)::text, -1) || ',"traceId":' || coalesce(to_json(u.trace_id)::text, 'null')
                || ',"producerSub":' || coalesce(to_json(u.producer_sub)::text, 'null') || ',"data":',
           convert_to(coalesce(u.payload, 'null'), 'UTF8'), u.is_encrypted
      from queen.unpack_segment(s.lane, s.created_at, 1, uuid_send(s.key), '\x01'::bytea || s.message) u;
    return query select 200, '}', null::bytea, false;
end
$$;
