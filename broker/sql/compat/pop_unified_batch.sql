-- queen.pop_unified_batch: pop from SQL, in the caller's transaction.
--
-- needs: pop_one, pop_lanes, require_read_committed
-- called by  SQL sessions; queen.pop_specific_batch
-- in         p_requests: array of {idx?, ...}, see queen.pop_one; without partition_name any partition
-- out        array of {idx, result}
-- locks      lanes that get a consumer; then as queen.pop_one, one request after the other, skipping rows that others have locked
-- raises     QN001, QN002, QN003
create or replace function queen.pop_unified_batch(p_requests jsonb)
returns jsonb
language plpgsql
as $$
declare
    r        record;
    v_lanes  text[]; -- of each request; none for a single one
    v_answer jsonb := '[]';
begin
    perform queen.require_read_committed();
    if jsonb_typeof(p_requests) is distinct from 'array' then
        raise exception 'requests must be an array' using errcode = 'QN001';
    end if;
    if jsonb_array_length(p_requests) > 1 then
        -- Create all missing consumers first: that locks lanes, and a session must not wait for a lane after it has locked consumers.
        v_lanes := array_fill(null::text, array[jsonb_array_length(p_requests)]);
        for r in
            select e.value, e.ord
              from jsonb_array_elements(p_requests) with ordinality e(value, ord)
             order by e.value ->> 'queue_name', e.value ->> 'partition_name', e.value ->> 'consumer_group', e.ord
        loop
            v_lanes[r.ord] := queen.pop_lanes(r.value)::text;
        end loop;
    end if;
    for r in
        select e.value, e.ord
          from jsonb_array_elements(p_requests) with ordinality e(value, ord) order by e.ord
    loop
        v_answer := v_answer || jsonb_build_array(jsonb_build_object(
            'idx', coalesce(r.value -> 'idx', to_jsonb(r.ord - 1)), 'result', queen.pop_one(r.value, v_lanes[r.ord]::bigint[])));
    end loop;
    return v_answer;
end
$$;
