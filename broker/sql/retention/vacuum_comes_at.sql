-- queen.vacuum_comes_at: the number of dead rows of a table at which autovacuum processes it.
--
-- called by  queen.rows_stuck
create or replace function queen.vacuum_comes_at(p_table regclass)
returns bigint
language plpgsql stable
as $$
declare
    v_threshold float8 := current_setting('autovacuum_vacuum_threshold');
    v_share     float8 := current_setting('autovacuum_vacuum_scale_factor');
    v_rows      float8;
    o           record;
begin
    for o in
        select k.option_name as name, k.option_value::float8 as value
          from pg_class c cross join lateral pg_options_to_table(c.reloptions) k
         where c.oid = p_table and k.option_name in ('autovacuum_vacuum_threshold', 'autovacuum_vacuum_scale_factor')
    loop
        if o.name = 'autovacuum_vacuum_threshold' then
            v_threshold := o.value;
        else
            v_share := o.value;
        end if;
    end loop;
    select greatest(c.reltuples, 0) into v_rows from pg_class c where c.oid = p_table;
    return v_threshold + v_share * v_rows;
end
$$;
