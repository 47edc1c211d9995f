-- crm.write_subscriptions: writes the current state of subscriptions, unless a newer event has written them.
--
-- called by: crm.ingest          out: their previous customers          locks: the rows          raises: 22xxx, 23xxx
-- in:  an array of objects, one per row, with the members named below; an absent member becomes null
create or replace function crm.write_subscriptions(p_rows jsonb) returns uuid[]
language plpgsql
as $$
declare
    moved uuid[];
begin
    with written as (
        insert into crm.subscription_account as t (id, customer_id, package_id, location_code, status, price, currency,
                billing_period, started_at, next_bill_date, cancelled_at, updated_at)
        select r.id, r.customer_id, r.package_id, r.location_code, r.status, r.price, r.currency, r.billing_period,
               r.started_at, r.next_bill_date, r.cancelled_at, r.at
          from jsonb_to_recordset(p_rows) r(id uuid, customer_id uuid, package_id int, location_code text, status
                 smallint, price numeric, currency text, billing_period text, started_at timestamptz, next_bill_date
                 date, cancelled_at timestamptz, at timestamptz)
            on conflict (id) do update
           set (previous_customer_id, customer_id, package_id, location_code, status, price, currency, billing_period, started_at,
                next_bill_date, cancelled_at, updated_at) =
               (nullif(t.customer_id, excluded.customer_id), excluded.customer_id, excluded.package_id, excluded.location_code, excluded.status, excluded.price,
                excluded.currency, excluded.billing_period, excluded.started_at, excluded.next_bill_date,
                excluded.cancelled_at, excluded.updated_at)
         where excluded.updated_at >= t.updated_at
     returning t.previous_customer_id
    )
    select array_agg(previous_customer_id) filter (where previous_customer_id is not null) into moved from written;
    return coalesce(moved, '{}');
end
$$;
