-- crm.changed(customers, attributes, transactions): these customers' data changed in this transaction, and it is not known
-- in which tables.  For repairs and backfills by SQL.
-- called by: operators
-- in:  customers      those touched; order and doubles do not matter
--      attributes     customer, subscription, wallet or package rows were written
--      transactions   transaction, visit or purchase rows were written
-- out: -
-- locks: as crm.changed_attributes, then as crm.changed_transactions
-- raises: nothing of its own
create or replace function crm.changed(p_customers uuid[], p_attributes boolean, p_transactions boolean) returns void
language plpgsql
set search_path = crm, pg_temp
as $$
declare
    others uuid[];
begin
    if p_attributes then
        perform crm.changed_attributes(p_customers, '{}', '{}', '{}', '{}');
    end if;
    -- A customer who came or went has a row to gain or to lose here too, transactions or not; and it has copies.
    if p_attributes and not p_transactions then
        others := crm.without_transactions(p_customers) || crm.stale_copies(p_customers);
    elsif p_transactions then
        others := p_customers;
    end if;
    if cardinality(others) > 0 then
        perform crm.changed_transactions(others, '{}', '{}', '{}');
    end if;
end
$$;
