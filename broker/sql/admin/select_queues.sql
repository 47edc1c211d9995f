-- queen.select_queues: the queues of a namespace, a task or both, highest priority first.
--
-- called by  broker/src/broker/pop/selector.c (call "select_queues"); queen.pop_candidates
-- in         null: any
create or replace function queen.select_queues(p_namespace text, p_task text)
returns table (name text)
language sql stable
as $$
    select q.name::text from queen.queues q
     where (p_namespace is null or q.namespace = p_namespace) and (p_task is null or q.task = p_task)
     order by q.priority desc, q.name
$$;
