-- crm.recompute_parts_function(model, shape): creates the function crm.recompute_<model>_parts that updates the live table
-- for customers whose changed tables are known: one list of customers per part, after one for those for whom anything may
-- have changed.
--
-- It selects only the columns of a part, so PostgreSQL removes the joins of the other parts from the model's definition
-- (they are left joins on unique keys).  It would not remove them directly in the `from` of an update.  The order is that
-- of crm.recompute_function, for the same reasons: locks for customers without a row, at once, then row locks, then the
-- computation in separate statements.
-- called by: crm.finish_live
-- in: model; shape: a table that has the live table's columns already          out: -
-- locks: none          raises: nothing of its own
create or replace function crm.recompute_parts_function(p_model text, p_shape text) returns void
language plpgsql
set search_path = crm, pg_temp
as $$
declare
    relation text := p_model || '_live';
    parameters text;
    lists text;
    updates text;
begin
    with part as (
        select p.nth, p.source, b.attnum as first,
               coalesce(lead(b.attnum) over (order by p.nth), 32767) as beyond
        from crm.read_model_parts(p_model) p
        join pg_attribute b on b.attrelid = format('crm.%I', p_shape)::regclass and b.attname = p.first_column
    ), made as (
        select part.nth, format('p_%s uuid[]', part.source) as parameter, format('p_%s', part.source) as list,
               format($update$
            if cardinality(p_%1$s) > 0 then
                with part as materialized (select q.id, %3$s from (%5$s) q)
                update crm.%2$I l
                set %4$s
                from part
                where l.id = part.id;
            end if;$update$,
                      part.source, relation, string_agg(format('q.%I', a.attname), ', ' order by a.attnum),
                      string_agg(format('%1$I = part.%1$I', a.attname), ', ' order by a.attnum),
                      replace(crm.read_model_query(p_model, true), '$1', '$' || part.nth + 1)) as update
        from part
        join pg_attribute a on a.attrelid = format('crm.%I', p_shape)::regclass and not a.attisdropped
                           and a.attnum >= part.first and a.attnum < part.beyond
        group by part.nth, part.source
    )
    select string_agg(parameter, ', ' order by nth), string_agg(list, ' || ' order by nth), string_agg(update, '' order by nth)
    into parameters, lists, updates
    from made;

    execute format($make$
        create or replace function crm.%1$I(p_whole uuid[], %2$s) returns void
        language plpgsql
        as $body$
        declare
            customers uuid[] := array(select distinct u from unnest(p_whole || %3$s) u);
            whole uuid[] := p_whole;
            absent uuid[];
            locked uuid[];
        begin
            -- Search for customers without a row only if there are any, because that plan may read the whole index.
            if (select count(*) from crm.%5$I l where l.customer_uuid = any (customers)) = cardinality(customers) then
                locked := array(select l.customer_uuid from crm.%5$I l where l.customer_uuid = any (customers) order by l.id for no key update);
            end if;
            -- A row that another transaction deleted while this one waited is not locked.
            while cardinality(locked) is distinct from cardinality(customers) loop
                absent := array(select u from unnest(customers) u where not exists (select from crm.%5$I l where l.customer_uuid = u));
                perform pg_advisory_xact_lock(%4$s, bucket)
                from (select distinct hashtext(u::text) & 1023 as bucket from unnest(absent) u order by 1) buckets;
                locked := array(select l.customer_uuid from crm.%5$I l where l.customer_uuid = any (customers) order by l.id for no key update);
                exit when not exists (select unnest(customers) except select unnest(absent || locked));
            end loop;
            if cardinality(absent) > 0 then
                whole := whole || array(select c.customer_uuid
                                        from crm.customer c
                                        where c.customer_uuid = any (customers)
                                          and not exists (select from crm.%5$I l where l.customer_uuid = c.customer_uuid));
            end if;

            if cardinality(whole) > 0 then
                perform crm.%6$I(whole);
            end if;
%7$s
        end
        $body$
        $make$,
        'recompute_' || p_model || '_parts', parameters, lists, 7642 + crm.model_lock(p_model), relation,
        'recompute_' || p_model, updates);
end
$$;
