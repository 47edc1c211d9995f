-- crm.read_model_parts(model): the table of the write model that each column of a read model comes from.
--
-- A part starts at a column and ends before the first column of the next part.  The definitions have this order.  No column
-- may depend on two tables.  Columns before the first part are computed only with the whole row.
-- called by: crm.read_model_version, crm.recompute_parts_function
-- in:  model
-- out: nth, from 1: index of the part among the lists of crm.recompute_<model>_parts; source: the table; first_column
-- locks: none          raises: nothing
create or replace function crm.read_model_parts(p_model text)
returns table (nth int, source text, first_column text)
language sql immutable
set search_path = crm, pg_temp
as $$
    select p.nth, p.source, p.first_column
    from (values
        ('customer_attributes', 1, 'customer', 'first_name'),
        ('customer_attributes', 2, 'subscription_account', 'is_active_subscriber'),
        ('customer_attributes', 3, 'wallet_account', 'wallet_count'),
        ('customer_attributes', 4, 'package_account', 'package_count'),

        ('customer_transactions', 1, 'transaction_log', 'transaction_count'),
        ('customer_transactions', 2, 'visit_log', 'visit_count'),
        ('customer_transactions', 3, 'purchase_log', 'purchase_count')
    ) p (model, nth, source, first_column)
    where p.model = p_model
$$;
