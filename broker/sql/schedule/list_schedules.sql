-- queen.list_schedules: GET /api/v1/schedules.
--
-- needs: schedule_json, strict_int
-- called by  broker/src/api/admin/schedules.c
-- in         p_args: queue; limit (1000), offset
-- out        {"schedules":[...]}, by name
create or replace function queen.list_schedules(p_args jsonb)
returns table (status int, piece text, payload bytea, sealed boolean)
language plpgsql stable
as $$
begin
    return query
    select 200, case when row_number() over (order by s.name) = 1 then '{"schedules" : [' else '}, ' end
                || left(queen.schedule_json(s)::text, -1) || ', "payload" : ',
           convert_to(s.payload::text, 'UTF8'), s.sealed
      from (select * from queen.schedules s
             where p_args ->> 'queue' is null or s.queue_name = p_args ->> 'queue'
             order by s.name
             limit greatest(queen.strict_int(p_args, 'limit', 1000), 0)
            offset greatest(queen.strict_int(p_args, 'offset', 0), 0)) s
     order by s.name;
    return query select 200, case when found then '}]}' else '{"schedules" : []}' end, null::bytea, false;
end
$$;
