-- crm.patch_customers: changes the members of customers that each patch contains, unless a newer event has written them; an
-- unknown customer is created.
--
-- called by: crm.ingest, after crm.write_customers          out: the new customers          raises: 22xxx, 23xxx
-- in:  an array of objects, one per patch, in order: members as in crm.write_customers; null empties one
-- locks: the rows
create or replace function crm.patch_customers(p_rows jsonb) returns uuid[]
language plpgsql
as $$
declare
    patch jsonb;
    record jsonb;
    fresh uuid[] := '{}';
begin
    for patch in select value from jsonb_array_elements(p_rows) loop
        select to_jsonb(c) into record from crm.customer c where c.customer_uuid = (patch ->> 'customer_id')::uuid for no key update;
        fresh := fresh || crm.write_customers(jsonb_build_array(coalesce(record, '{}') || patch));
    end loop;
    return fresh;
end
$$;
