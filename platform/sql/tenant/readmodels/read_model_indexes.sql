-- crm.read_model_indexes(model): the indexes of a model's view and live table.
--
-- There are few, because every refresh maintains them.  In the live table, an index on a column that most events change
-- also prevents HOT updates, so those with live = false exist only on the view.
--
-- An entry of a btree has at most 2,704 bytes, otherwise the write fails.  So no btree here has a column of unbounded
-- length.
-- called by: crm.read_model_version, crm.index_read_model
-- in:  model
-- out: suffix of the name; whether it is unique; method and columns; whether the live table has it too
-- locks: none          raises: nothing
create or replace function crm.read_model_indexes(p_model text)
returns table (suffix text, is_unique boolean, definition text, live boolean)
language sql immutable
set search_path = crm, pg_temp
as $$
    select i.suffix, i.is_unique, i.definition, i.live
    from (values
        -- REFRESH ... CONCURRENTLY compares by the first one.
        ('customer_attributes', 'id', true, '(id)', true),
        ('customer_attributes', 'uuid', true, '(customer_uuid)', true),
        ('customer_attributes', 'locations', false, 'using gin (location_codes)', true),
        ('customer_attributes', 'packages', false, 'using gin (package_ids)', true),
        ('customer_attributes', 'tags', false, 'using gin (tags)', true),
        -- These support index-only counts of the most common filters, and joins by id.  In the live tables they make an
        -- update of these columns about 35 us slower and the count a hundred times faster (bench/segments.py).
        ('customer_attributes', 'active', false, '(is_active_subscriber) where is_active_subscriber', true),
        ('customer_attributes', 'subscribers', false, '(wallet_balance, id) where is_active_subscriber', true),

        ('customer_transactions', 'id', true, '(id)', true),
        ('customer_transactions', 'uuid', true, '(customer_uuid)', true),
        ('customer_transactions', 'locations', false, 'using gin (transaction_locations)', true),
        ('customer_transactions', 'visits', false, 'using gin (visit_locations)', true),
        ('customer_transactions', 'products', false, 'using gin (product_ids)', true),
        -- At least 3 in the last so many days: see crm.customer_transactions_definition.
        ('customer_transactions', 'third_last', false, '(third_last_transaction_on, id)', true),
        ('customer_transactions', 'busy_subscribers', false,
         '(third_last_transaction_on, id) include (few_location_codes) where is_active_subscriber', true),
        ('customer_transactions', 'last', false, '(last_transaction_at)', false)
    ) i (model, suffix, is_unique, definition, live)
    where i.model = p_model
$$;
