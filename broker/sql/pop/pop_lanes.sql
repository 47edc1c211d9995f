-- queen.pop_lanes: the lanes that one pop of several looks at, with the group's consumers made.
--
-- needs: discover_lanes, select_queues
-- called by  queen.pop_unified_batch, for all requests before the first claim
-- in         p: as queen.pop_one; a request that queen.pop_one will refuse has no lanes
create or replace function queen.pop_lanes(p jsonb)
returns bigint[]
language plpgsql
as $$
declare
    v_queue     text := p ->> 'queue_name';
    v_namespace text := coalesce(p ->> 'namespace', '');
    v_task      text := coalesce(p ->> 'task', '');
    v_partition text := nullif(p ->> 'partition_name', '');
    v_name      text;
    v_lanes     bigint[] := '{}';
begin
    if v_queue is null and (v_partition is not null or (v_namespace = '' and v_task = '')) then
        return '{}';
    end if;
    for v_name in
        select v_queue where v_queue is not null
         union all
        select n.name from queen.select_queues(nullif(v_namespace, ''), nullif(v_task, '')) n(name) where v_queue is null
    loop
        v_lanes := v_lanes || queen.discover_lanes(
            v_name, v_partition, coalesce(nullif(p ->> 'consumer_group', ''), '__QUEUE_MODE__'),
            case when v_queue is null then v_namespace else '' end, case when v_queue is null then v_task else '' end,
            p ->> 'sub_mode', p ->> 'sub_from');
    end loop;
    return v_lanes;
end
$$;
