-- queen.list_labels: GET /api/v1/resources/namespaces and GET /api/v1/resources/tasks.
--
-- needs: freshen_stats
-- called by  broker/src/api/admin/resources.c
-- in         p_args: not used; p_label: 'namespace' or 'task'
-- out        {"namespaces":[...]} or {"tasks":[...]}: names that are not empty, sorted; rows as described in broker/src/api/sql_endpoint.h
create or replace function queen.list_labels(p_args jsonb, p_label text)
returns table (status int, piece text, payload bytea, sealed boolean, shape text,
               label text, queues bigint, partitions bigint, total bigint, pending bigint, others bigint)
language plpgsql
set enable_hashjoin = on
set enable_mergejoin = on
set enable_seqscan = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
set work_mem = '32MB'
as $$
#variable_conflict use_column
begin
    perform queen.freshen_stats();
    status := 200;
    piece := format('{"%ss":[', p_label);
    shape := format('{"%s":$1,"queues":$2,"partitions":$3,"messages":{"total":$4,"pending":$5},'
                    '"name":$1,"queueCount":$2,"%s":$6}', p_label,
                    case p_label when 'task' then 'namespaceCount' else 'taskCount' end);
    return next;
    return query
    with labelled as materialized (
        select case p_label when 'task' then q.task else q.namespace end collate "C" as label,
               case p_label when 'task' then q.namespace else q.task end collate "C" as other, q.id
          from queen.queues q
         where queen.may_see(p_args, q.name)
    )
    select null::int, null::text, null::bytea, null::boolean, null::text,
           k.label::text, k.queues, k.partitions, k.total, k.pending, coalesce(o.others, 0)
      from (select n.label, count(*) as queues, coalesce(sum(s.child_count), 0)::bigint as partitions,
                   coalesce(sum(s.total_messages), 0)::bigint as total,
                   greatest(coalesce(sum(s.pending_messages), 0), 0)::bigint as pending
              from labelled n
              left join queen.stats s on s.queue_id = n.id and s.stat_type = 'queue'
             where n.label <> ''
             group by n.label) k
      left join (select d.label, count(*) as others
                   from (select distinct n.label, n.other from labelled n where n.other <> '') d
                  group by d.label) o on o.label = k.label
     order by k.label;
    piece := ']}';
    shape := null;
    return next;
end
$$;
