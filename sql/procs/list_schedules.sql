-- queen.list_schedules: GET /api/v1/schedules.
--
-- needs: schedule_json, param_int
-- called by  src/api/schedules.c
-- in         p_args: queue; limit (1000), offset
-- out        {"schedules":[...]}, by name
create or replace function queen.list_schedules(p_args jsonb)
returns json
language sql stable
as $$
    select json_build_object('schedules', coalesce(json_agg(queen.schedule_json(s) order by s.name), '[]'))
      from (select * from queen.schedules s
             where p_args ->> 'queue' is null or s.queue_name = p_args ->> 'queue'
             order by s.name
             limit greatest(queen.param_int(p_args, 'limit', 1000), 0)
            offset greatest(queen.param_int(p_args, 'offset', 0), 0)) s
$$;
