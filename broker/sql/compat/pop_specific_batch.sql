-- queen.pop_specific_batch: pop from named partitions.
--
-- needs: pop_unified_batch
-- called by  tests of clients
-- in, out    as queen.pop_unified_batch; a missing partition_name is Default
create or replace function queen.pop_specific_batch(p_requests jsonb)
returns jsonb
language sql volatile
as $$
    select queen.pop_unified_batch(coalesce(jsonb_agg(
               case when coalesce(e.value ->> 'partition_name', '') = ''
                    then e.value || '{"partition_name":"Default"}' else e.value end order by e.ord), '[]'))
      from jsonb_array_elements(p_requests) with ordinality e(value, ord)
$$;
