-- queen.pop_candidates: the lanes that a pop may claim, in order of preference.
--
-- needs: discover, select_queues
-- called by  queen.pop_one
-- in         p_queue null: the queues of p_namespace and p_task, highest priority first; p_partition null: any
-- out        columns of queen.discover, in order (ord)
-- effects    as queen.discover
create or replace function queen.pop_candidates(
    p_queue text, p_partition text, p_group text, p_namespace text, p_task text, p_mode text, p_from text)
returns table (ord bigint, consumer bigint, pending boolean, lease_us bigint)
language sql volatile
as $$
    select row_number() over (order by q.ord, d.ord), d.consumer, d.pending, d.lease_us
      from (select p_queue, 1::bigint where p_queue is not null
             union all
            select n.name, n.ord from queen.select_queues(p_namespace, p_task) with ordinality n(name, ord)
             where p_queue is null) q(name, ord)
      cross join lateral queen.discover(q.name, p_partition, p_group,
                                        case when p_queue is null then coalesce(p_namespace, '') else '' end,
                                        case when p_queue is null then coalesce(p_task, '') else '' end,
                                        p_mode, p_from)
           with ordinality d(lane, lane_id, lane_name, consumer, pending, lease_us, ord)
$$;
