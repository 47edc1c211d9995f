-- crm.recompute_function(name, relation, model, shape): creates the function crm.<name>(customers) that updates a live
-- table for some customers.
--
-- The function is generated because its select is the model's definition at the time when the table was built. Its order
-- matters: locks for customers without a row, then row locks, until each customer has one of them; then the computation, in
-- a separate statement so that it sees rows that were committed while it waited.  So of two transactions with the same
-- customer, the second computes with the data of the first.  Ingestion keeps a customer's events in order anyway; repairs,
-- backfills and manual changes do not.
-- called by: crm.start_live, crm.finish_live
-- in: name of the function, relation of the table, model, shape: a table that has its columns already          out: -
-- locks: none          raises: nothing of its own
create or replace function crm.recompute_function(p_name text, p_relation text, p_model text, p_shape text) returns void
language plpgsql
set search_path = crm, pg_temp
as $$
declare
    assignments text;
begin
    select string_agg(format('%1$I = q.%1$I', attname), ', ' order by attnum)
    into assignments
    from pg_attribute
    where attrelid = format('crm.%I', p_shape)::regclass and attnum > 0 and not attisdropped
      and attname not in ('id', 'customer_uuid');

    execute format($make$
        create or replace function crm.%1$I(p_customers uuid[]) returns void
        language plpgsql
        set search_path = crm, pg_temp
        as $body$
        declare
            absent uuid[];
            locked uuid[];
        begin
            loop
                -- Customers without a row have none to lock, so they share a few locks by number.
                absent := array(select u from unnest(p_customers) u
                                where not exists (select from crm.%2$I l where l.customer_uuid = u));
                perform pg_advisory_xact_lock(%5$s, bucket)
                from (select distinct hashtext(u::text) & 1023 as bucket from unnest(absent) u order by 1) buckets;
                locked := array(select l.customer_uuid from crm.%2$I l
                                where l.customer_uuid = any (p_customers) order by l.id for no key update);
                -- A row that another transaction deleted while this one waited is not locked.
                exit when not exists (select unnest(p_customers) except select unnest(absent || locked));
            end loop;

            delete from crm.%2$I l
            where l.customer_uuid = any (p_customers)
              and not exists (select from crm.customer c where c.id = l.id);

            insert into crm.%2$I (id, customer_uuid)
            select c.id, c.customer_uuid
            from crm.customer c
            where c.customer_uuid = any (p_customers)
              and not exists (select from crm.%2$I l where l.id = c.id)
            order by c.id
            on conflict do nothing;

            perform from crm.%2$I l where l.customer_uuid = any (p_customers) order by l.id for no key update;

            update crm.%2$I l
            set %3$s
            from (%4$s) q
            where l.id = q.id;
        end
        $body$
        $make$,
        p_name, p_relation, assignments, crm.read_model_query(p_model, true),
        -- A transaction that maintains both tables takes the locks of the one in use, then those of the next one.  With one
        -- set of locks for both it would take them out of order and deadlock with a backfill.
        7642 + crm.model_lock(case when p_relation = p_model || '_live' then p_model else p_model || '_live' end));
end
$$;
