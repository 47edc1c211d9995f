-- crm.write_transactions: appends sales and refunds.
--
-- called by: crm.ingest          out: -          locks: the rows          raises: 22xxx, 23xxx
-- in:  an array of objects, one per row, with the members named below; an absent member becomes null
create or replace function crm.write_transactions(p_rows jsonb) returns void
language plpgsql
as $$
begin
    insert into crm.transaction_log as t (id, customer_id, location_code, kind, payment_method, amount, discount,
            tip, created_at)
    select r.id, r.customer_id, r.location_code, r.kind, r.payment_method, r.amount, r.discount, r.tip, r.at
      from jsonb_to_recordset(p_rows) r(id uuid, customer_id uuid, location_code text, kind text, payment_method
             text, amount numeric, discount numeric, tip numeric, at timestamptz);
end
$$;
