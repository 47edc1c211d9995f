-- queen.pop_candidates: what a pop could claim, in order of preference.
--
-- needs: discover, select_queues, pending_lanes, note_empty_scan
-- called by  queen.pop_one
-- in         p_queue null: the queues of p_namespace and p_task, most urgent first; p_partition null: any; p_lanes: lanes that
--            queen.pop_lanes has found before for this pop; null: look for them now
-- out        columns of queen.discover, in order (ord)
-- effects    as queen.discover; with p_lanes no consumer is made
create or replace function queen.pop_candidates(
    p_queue text, p_partition text, p_group text, p_namespace text, p_task text, p_mode text, p_from text, p_lanes bigint[])
returns table (ord bigint, consumer bigint, pending boolean, lease_us bigint)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_before bigint := 0;
    v_queue  text;
begin
    for v_queue in
        select p_queue where p_queue is not null
         union all
        select n.name from queen.select_queues(p_namespace, p_task) n(name) where p_queue is null
    loop
        if p_lanes is null then
            return query
            select v_before + d.ord, d.consumer, d.pending, d.lease_us
              from queen.discover(v_queue, p_partition, p_group,
                                  case when p_queue is null then coalesce(p_namespace, '') else '' end,
                                  case when p_queue is null then coalesce(p_task, '') else '' end, p_mode, p_from)
                   with ordinality d(lane, lane_id, lane_name, consumer, pending, lease_us, ord);
        else
            return query
            select v_before + d.ord, d.consumer, d.pending, d.lease_us
              from queen.pending_lanes(
                       p_group,
                       array(select l.num from queen.queues q
                              cross join lateral (select l.num from unnest(p_lanes) u(num)
                                                    join queen.lanes l on l.num = u.num and coalesce(l.origin_queue, l.queue_id) = q.id) l
                              where q.name = v_queue),
                       p_partition is not null)
                   with ordinality d(lane, lane_id, lane_name, consumer, pending, lease_us, ord);
            if not found and p_partition is null then
                perform queen.note_empty_scan(v_queue, p_group);
            end if;
        end if;
        v_before := v_before + 1000000000;
    end loop;
end
$$;
