-- queen.list_labels: GET /api/v1/resources/namespaces and GET /api/v1/resources/tasks.
--
-- needs: freshen_stats
-- called by  src/api/resources.c
-- in         p_args: nothing of it; p_label: 'namespace' or 'task'
-- out        {"namespaces":[...]} or {"tasks":[...]}: names that are not empty, sorted
create or replace function queen.list_labels(p_args jsonb, p_label text)
returns json
language plpgsql
set enable_hashjoin = on
set enable_mergejoin = on
set enable_seqscan = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
as $$
begin
    perform queen.freshen_stats();
    return (
        select json_build_object(p_label || 's', coalesce(json_agg(json_build_object(
                   p_label, k.label, 'queues', k.queues, 'partitions', k.partitions,
                   'messages', json_build_object('total', k.total, 'pending', k.pending),
                   'name', k.label, 'queueCount', k.queues,
                   case p_label when 'task' then 'namespaceCount' else 'taskCount' end, k.others)
                   order by k.label), '[]'))
          from (select n.label, count(*) as queues, coalesce(sum(s.child_count), 0) as partitions,
                       coalesce(sum(s.total_messages), 0) as total, greatest(coalesce(sum(s.pending_messages), 0), 0) as pending,
                       count(distinct nullif(n.other, '')) as others
                  from queen.queues q
                  cross join lateral (select case p_label when 'task' then q.task else q.namespace end as label,
                                             case p_label when 'task' then q.namespace else q.task end as other) n
                  left join queen.stats s on s.queue_id = q.id and s.stat_type = 'queue'
                 where n.label <> ''
                 group by n.label) k);
end
$$;
