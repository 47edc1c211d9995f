-- queen.configure_queue_v1: configure a queue from SQL, as POST /api/v1/configure does.
--
-- needs: configure_queue
-- called by  SQL sessions
-- in         p_options: the options, and with them "namespace" and "task"; or the body of the HTTP request, with the
--            options inside "options"
-- out        {"configured":true,"queueId",...} as the HTTP answer
-- raises     QN001 for an invalid option
create or replace function queen.configure_queue_v1(p_queue_name text, p_options jsonb default '{}')
returns jsonb
language sql volatile
as $$
    select jsonb_build_object('configured', true, 'queueId', c.queue_id, 'partitionId', c.default_lane_id,
                              'queue', p_queue_name, 'namespace', l.namespace, 'task', l.task,
                              'options', c.options)
      from (select case when jsonb_typeof(p_options -> 'namespace') = 'string'
                        then p_options ->> 'namespace' else '' end,
                   case when jsonb_typeof(p_options -> 'task') = 'string'
                        then p_options ->> 'task' else '' end) l(namespace, task)
      cross join lateral queen.configure_queue(
           p_queue_name, l.namespace, l.task,
           case when jsonb_typeof(p_options -> 'options') = 'object' then p_options -> 'options'
                when jsonb_typeof(p_options) = 'object' then p_options - 'namespace' - 'task'
                else p_options end) c
$$;
