-- crm.write_purchases: appends purchases.
--
-- called by: crm.ingest          out: -          locks: the rows          raises: 22xxx, 23xxx
-- in:  an array of objects, one per row, with the members named below; an absent member becomes null
create or replace function crm.write_purchases(p_rows jsonb) returns void
language plpgsql
as $$
begin
    insert into crm.purchase_log as t (id, customer_id, product_id, category, location_code, quantity, amount,
            purchased_at)
    select r.id, r.customer_id, r.product_id, r.category, r.location_code, r.quantity, r.amount, r.at
      from jsonb_to_recordset(p_rows) r(id uuid, customer_id uuid, product_id int, category text, location_code
             text, quantity int, amount numeric, at timestamptz);
end
$$;
