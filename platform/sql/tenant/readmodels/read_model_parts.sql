-- crm.read_model_parts(model): which table of the write model each column of a read model comes from.
--
-- A part begins at a column and goes on to the next part's first.  The definitions are written in this order; a column
-- that needs two tables would have to be computed with both, so there is none.  What stands before the first part is computed with the
-- whole row only.
-- called by: crm.read_model_version, crm.recompute_parts_function
-- in:  model
-- out: nth, from 1: the part's place among the lists of crm.recompute_<model>_parts; source: the table; first_column
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
