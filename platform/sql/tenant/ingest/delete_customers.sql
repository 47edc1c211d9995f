-- crm.delete_customers: deletes customers with all of their rows.
--
-- called by: crm.ingest          in: their uuids          out: -          raises: nothing
-- locks: their rows
create or replace function crm.delete_customers(p_customers uuid[]) returns void
language plpgsql
set search_path = crm, pg_temp
as $$
begin
    delete from crm.subscription_account where customer_id = any (p_customers);
    delete from crm.wallet_account where customer_id = any (p_customers);
    delete from crm.package_account where customer_id = any (p_customers);
    delete from crm.transaction_log where customer_id = any (p_customers);
    delete from crm.visit_log where customer_id = any (p_customers);
    delete from crm.purchase_log where customer_id = any (p_customers);
    delete from crm.customer where customer_uuid = any (p_customers);
end
$$;
