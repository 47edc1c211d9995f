-- queen.configure_queue_v1: configure a queue from SQL, as POST /api/v1/configure does.
--
-- needs: configure_queue
-- called by  SQL sessions
-- in         p_options: the options, and with them "namespace" and "task"; or the body of the HTTP request, with the
--            options inside "options"
-- out        {"configured":true,"queueId",...} as the HTTP answer
-- raises     QN001 for an invalid option, and for another member beside "options"
create or replace function queen.configure_queue_v1(p_queue_name text, p_options jsonb default '{}')
returns jsonb
language plpgsql
as $$
declare
    v_inside boolean := coalesce(jsonb_typeof(p_options -> 'options') = 'object', false);
    v_beside text;
    v_options jsonb := case when v_inside then p_options -> 'options'
                            when jsonb_typeof(p_options) = 'object' then p_options - 'namespace' - 'task'
                            else p_options end;
    v_answer jsonb;
begin
    select min(k) into v_beside from jsonb_object_keys(case when v_inside then p_options else '{}' end) k
     where k not in ('queue', 'namespace', 'task', 'options');
    if v_beside is not null then
        raise exception 'member "%" belongs inside "options"', v_beside using errcode = 'QN001';
    elsif jsonb_typeof(p_options -> 'namespace') not in ('string', 'null') or jsonb_typeof(p_options -> 'task') not in ('string', 'null') then
        raise exception 'namespace and task must be strings' using errcode = 'QN001';
    end if;
    select jsonb_build_object('configured', true, 'queueId', c.queue_id, 'partitionId', c.default_lane_id,
                              'queue', p_queue_name, 'namespace', coalesce(p_options ->> 'namespace', ''),
                              'task', coalesce(p_options ->> 'task', ''), 'options', c.options)
      into v_answer
      from queen.configure_queue(p_queue_name, coalesce(p_options ->> 'namespace', ''), coalesce(p_options ->> 'task', ''), v_options) c;
    return v_answer;
end
$$;
