-- crm.changed(customers, attributes, transactions): these customers' data changed in this transaction.
--
-- Notes when the data last changed, and brings the live tables up to date for these customers, so that what is committed
-- is what a segment sees.  Call it last: it computes from what the transaction has written.
-- called by: the ingest functions, once per transaction
-- in:  customers      those touched; order and doubles do not matter
--      attributes     customer, subscription, wallet or package rows were written
--      transactions   transaction, visit or purchase rows were written
-- out: -
-- locks: advisory 7642/changes shared, until commit; then for each of the live tables, attributes first: advisory 7643 or
--        7644 / hash for customers without a row, and rows in the order of id
-- raises: nothing of its own
create or replace function crm.changed(p_customers uuid[], p_attributes boolean, p_transactions boolean) returns void
language plpgsql
set search_path = crm, pg_temp
as $$
declare
    now_us bigint := extract(epoch from clock_timestamp()) * 1000000;
    model crm.read_model;
    others uuid[];
begin
    perform pg_advisory_xact_lock_shared(7642, crm.model_lock('changes'));

    if p_attributes then
        perform setval('crm.customer_attributes_changed', now_us);
        select * into model from crm.read_model where read_model.model = 'customer_attributes';
        if model.live_version is not null then
            perform crm.recompute_customer_attributes(p_customers);
        end if;
        if model.next_live_version is not null then
            perform crm.recompute_customer_attributes_next(p_customers);
        end if;
    end if;

    -- A customer who came or went has a row to gain or to lose here too, transactions or not.
    if p_attributes and not p_transactions then
        others := crm.without_transactions(p_customers);
    elsif p_transactions then
        others := p_customers;
    end if;
    if cardinality(others) > 0 then
        perform setval('crm.customer_transactions_changed', now_us);
        select * into model from crm.read_model where read_model.model = 'customer_transactions';
        if model.live_version is not null then
            perform crm.recompute_customer_transactions(others);
        end if;
        if model.next_live_version is not null then
            perform crm.recompute_customer_transactions_next(others);
        end if;
    end if;
end
$$;
