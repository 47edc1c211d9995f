-- queen.ensure_lanes: find queues and partitions by name, and create missing ones.
--
-- needs: derive_labels
-- called by  queen.resolve_lanes, for the broker; queen.push_items_now; queen.execute_transaction_v2
-- in         pairs of queue and partition name
-- out        one row per pair: its position (0-based) and lane; no row for a pair whose queue was deleted meanwhile. lane -1: the
--            queue has a fixed set of partitions and this is not one of them
-- locks      new rows of queues by name; queues that get a lane, against deletion and changes, by id; new rows of lanes
--            by (queue, name). Concurrent creators wait for each other in the same order and cannot deadlock
--
-- There may be thousands of partitions, a few in each call. A call is one statement if all of them exist or can be created.
-- A new queue, or another session that creates the same partition at the same moment, takes another round.
create or replace function queen.ensure_lanes(p_queue text[], p_partition text[])
returns table (idx int, lane bigint, lane_id uuid)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_idx    int[];
    v_lane   bigint[];
    v_id     uuid[];
    v_is_new boolean[];
    v_made   bigint;
begin
    for v_round in 1 .. 3 loop
        -- Lateral subqueries, not joins: a plan made when there were no lanes would scan all lanes of the queue.
        with asked as materialized (
            select u.ord::int - 1 as idx, u.part, q.id as queue_id, l.num is null and not f.refused as is_new,
                   case when f.refused then -1 else coalesce(l.num, nextval('queen.lanes_num_seq')) end as num,
                   coalesce(l.id, gen_random_uuid()) as id
              from unnest(p_queue, p_partition) with ordinality u(queue, part, ord)
              cross join lateral (select q.id, q.partitions from queen.queues q where q.name = u.queue offset 0) q
              left join lateral (select l.num, l.id from queen.lanes l
                                  where l.queue_id = q.id and l.name = u.part offset 0) l on true
              cross join lateral (select case when l.num is not null or q.partitions = 0 then false
                                              when u.part ~ '^(0|[1-9][0-9]{0,3})$' then u.part::int >= q.partitions
                                              else true end as refused) f
        ), locked as materialized (
            select q.id, q.name, q.lease_seconds, q.limited, q.careful, q.encryption_enabled
              from queen.queues q
             where q.id = any (array(select a.queue_id from asked a where a.is_new))
             order by q.id for share
        ), made as (
            insert into queen.lanes (num, id, queue_id, name, lease_seconds, limited, careful, sealed)
                   overriding system value
            select a.num, a.id, a.queue_id, a.part, q.lease_seconds, q.limited, q.careful, q.encryption_enabled
              from asked a join locked q on q.id = a.queue_id
             where a.is_new
             order by a.queue_id, a.part
                on conflict (queue_id, name) do nothing
            returning queue_id
        ), noted as (
            insert into queen.partition_changes (queue_name, created, deleted)
            select q.name, m.n, 0
              from (select queue_id, count(*) as n from made group by queue_id) m join locked q on q.id = m.queue_id
        )
        select array_agg(a.idx), array_agg(a.num), array_agg(a.id), array_agg(a.is_new), (select count(*) from made)
          into v_idx, v_lane, v_id, v_is_new, v_made
          from asked a;
        if v_made = cardinality(array_positions(v_is_new, true)) then
            v_is_new := null; -- all of them exist now
            exit when cardinality(v_idx) = cardinality(p_queue);
        end if;
        insert into queen.queues (name, namespace, task)
        select n.name, d.namespace, d.task
          from (select distinct u.name from unnest(p_queue) u(name)
                 where (select q.id from queen.queues q where q.name = u.name) is null) n
          cross join lateral queen.derive_labels(n.name) d
         order by n.name
            on conflict (name) do nothing;
    end loop;
    return query
    select u.idx, u.lane, u.id
      from unnest(v_idx, v_lane, v_id, v_is_new) u(idx, lane, id, is_new)
     where u.is_new is not true;
end
$$;
