-- queen.trace_names: GET /api/v1/traces/names.
--
-- needs: param_int, iso_ms
-- called by  broker/src/api/admin/traces.c
-- in         p_args: limit (50), offset
-- out        {"trace_names":[...],"total","pagination"}, most recent first; "names" is the same for the command line client
create or replace function queen.trace_names(p_args jsonb)
returns json
language plpgsql
set enable_hashjoin = on
set enable_mergejoin = on
set enable_seqscan = on
set enable_bitmapscan = on
set plan_cache_mode = force_custom_plan
as $$
declare
    v_limit  bigint := greatest(queen.param_int(p_args, 'limit', 50), 0);
    v_offset bigint := greatest(queen.param_int(p_args, 'offset', 0), 0);
begin
    return (
        with named as materialized (
            select n.trace_name, count(*) as traces, count(distinct (t.lane, t.seq)) as messages,
                   min(t.created_at) as first_seen, max(t.created_at) as last_seen
              from queen.message_trace_names n join queen.message_traces t on t.id = n.trace_id
             group by n.trace_name
        ), page as (
            select * from named order by last_seen desc, trace_name limit v_limit offset v_offset
        )
        select json_build_object(
                   'trace_names', coalesce(json_agg(json_build_object(
                       'trace_name', p.trace_name, 'trace_count', p.traces, 'message_count', p.messages,
                       'last_seen', queen.iso_ms(p.last_seen)) order by p.last_seen desc, p.trace_name), '[]'),
                   'total', (select count(*) from named),
                   'pagination', json_build_object('limit', v_limit, 'offset', v_offset),
                   'names', coalesce(json_agg(json_build_object(
                       'name', p.trace_name, 'count', p.traces, 'firstSeen', queen.iso_ms(p.first_seen),
                       'lastSeen', queen.iso_ms(p.last_seen)) order by p.last_seen desc, p.trace_name), '[]'))
          from page p);
end
$$;
