-- queen.derive_labels: namespace and task of a queue that was created by its first use.
-- 'shop.orders.eu' -> shop, orders;  'orders' -> orders, ''.
create or replace function queen.derive_labels(p_name text)
returns table (namespace text, task text)
language sql immutable strict
as $$
    select split_part(p_name, '.', 1), split_part(p_name, '.', 2)
$$;
