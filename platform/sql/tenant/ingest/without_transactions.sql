-- crm.without_transactions(customers): the customers that lack a row in the model of transactions, or have one that must be
-- deleted, because they were created or deleted.
-- called by: crm.changed
-- in: customers          out: some of them, or null          locks: none          raises: nothing
create or replace function crm.without_transactions(p_customers uuid[]) returns uuid[]
language plpgsql stable
set search_path = crm, pg_temp
as $$
declare
    model crm.read_model;
    found_ones uuid[];
begin
    select * into model from crm.read_model where read_model.model = 'customer_transactions';
    if model.live_version is not null and model.next_live_version is null then
        select array_agg(u) into found_ones
        from unnest(p_customers) u
        where exists (select from crm.customer c where c.customer_uuid = u)
           <> exists (select from crm.customer_transactions_live l where l.customer_uuid = u);
    elsif model.live_version is null and model.next_live_version is null and model.view_version is not null then
        select array_agg(u) into found_ones
        from unnest(p_customers) u
        where exists (select from crm.customer c where c.customer_uuid = u)
           <> exists (select from crm.customer_transactions_mv m where m.customer_uuid = u);
    else
        -- There is no table to compare with, or two tables of which one is incomplete.
        found_ones := p_customers;
    end if;
    return found_ones;
end
$$;
