-- queen.merge_gauges: merge several trees of gauges.
--
-- called by  queen.report_system_metrics
-- in         rows of queen.system_metrics, oldest first: their metrics and the number of samples in each
-- out        a tree of the same shape; leaves are {"avg","min","max","last"}
create or replace function queen.merge_gauges(p_metrics jsonb[], p_samples int[])
returns jsonb
language plpgsql immutable
as $$
declare
    v_out jsonb := '{}';
    l     record;
begin
    if cardinality(p_metrics) = 1 then
        return p_metrics[1];
    end if;
    for l in
        with recursive nodes as (
            select m.nth, m.samples, array[]::text[] as path, m.tree as node
              from unnest(p_metrics, p_samples) with ordinality m(tree, samples, nth)
            union all
            select n.nth, n.samples, n.path || c.key, c.value
              from nodes n cross join lateral jsonb_each(n.node) c(key, value)
             where jsonb_typeof(n.node) = 'object' and not n.node ? 'avg')
        select n.path, jsonb_build_object(
                   'avg', round((sum((n.node ->> 'avg')::numeric * n.samples) / greatest(sum(n.samples), 1)), 2),
                   'min', min((n.node ->> 'min')::numeric), 'max', max((n.node ->> 'max')::numeric),
                   'last', (array_agg((n.node ->> 'last')::numeric order by n.nth desc))[1]) as leaf
          from nodes n
         where n.node ? 'avg'
         group by n.path order by n.path
    loop
        for i in 1 .. cardinality(l.path) - 1 loop
            if v_out #> l.path[:i] is null then
                v_out := jsonb_set(v_out, l.path[:i], '{}');
            end if;
        end loop;
        v_out := jsonb_set(v_out, l.path, l.leaf);
    end loop;
    return v_out;
end
$$;
