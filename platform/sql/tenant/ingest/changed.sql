-- crm.changed(customers, attributes, transactions): reports that data of these customers changed in this transaction, if
-- the tables are not known.  For repairs, backfills and manual use.
-- called by: operators
-- in:  customers      those affected; order and repetitions do not matter
--      attributes     customer, subscription, wallet or package rows were written
--      transactions   transaction, visit or purchase rows were written
-- out: -
-- locks: those of crm.changed_attributes, then those of crm.changed_transactions
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
    -- A customer that was created or deleted gains or loses a row here too, even without transactions, and the row has
    -- copied columns.
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
