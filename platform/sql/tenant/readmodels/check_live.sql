-- crm.check_live(model, n): compares n random rows of a live table with the write model, and repairs differing ones.  One
-- statement reads both, so ingestion cannot cause a difference: it is a bug, or the tables were changed by hand.
-- called by: platform/src/readmodel/visit.c
-- in:  model; n: number of customers; null: all
-- out: checked, differing
-- locks: none; those of crm.changed when a row is repaired          raises: nothing of its own
create or replace function crm.check_live(p_model text, p_n int, out checked bigint, out differing bigint)
language plpgsql
set search_path = crm, pg_temp
set jit = off
as $$
declare
    customers uuid[];
    wrong uuid[];
begin
    checked := 0;
    differing := 0;
    -- A table of an older definition will be replaced and cannot be compared with the new one.
    if not exists (select from crm.read_model r
                   where r.model = p_model and r.live_version = crm.read_model_version(p_model)) then
        return;
    end if;

    if p_n is not null then
        customers := crm.sample_customers(p_n);
        checked := coalesce(cardinality(customers), 0);
    else
        select count(*) into checked from crm.customer;
    end if;
    execute format($q$
        select array_agg(coalesce(q.customer_uuid, l.customer_uuid))
        from (%1$s) q
        full join (select * from crm.%2$I where %3$s) l on l.id = q.id
        where q is distinct from l
        $q$, crm.read_model_query(p_model, p_n is not null), p_model || '_live',
        case when p_n is null then 'true' else 'customer_uuid = any ($1)' end)
    into wrong using customers;

    differing := coalesce(cardinality(wrong), 0);
    if differing > 0 then
        execute format('select crm.%I($1)', 'recompute_' || p_model) using wrong;
    end if;
    update crm.read_model r
    set checked_rows = r.checked_rows + checked, differing_rows = r.differing_rows + differing,
        checked_at = clock_timestamp(),
        differed_at = case when differing > 0 then clock_timestamp() else r.differed_at end
    where r.model = p_model;
end
$$;
